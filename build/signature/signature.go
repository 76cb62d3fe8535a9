// SPDX-License-Identifier: Apache-2.0

// Package signature signs the SHA256SUMS of a release with an SSH key, and verifies a file that such a list names. The
// form is that of `ssh-keygen -Y`, which needs no network.
package signature

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"kube-scheduler-fork/build/nextstep"
)

// Namespace is what the signatures are for: `ssh-keygen -Y verify -n`. A signature for something else does not count.
const Namespace = "kube-scheduler-release"

// Names of the files.
const (
	Sums      = "SHA256SUMS"
	Signature = Sums + ".sig"
)

// Sign returns a signature of content by ssh-keygen, which asks for a passphrase, and uses an agent or a hardware key. key
// is the file of the private key, or of the public one if an agent has the private one.
func Sign(key string, content []byte) ([]byte, error) {
	command := exec.Command("ssh-keygen", "-Y", "sign", "-f", key, "-n", Namespace)
	var signed, complaint bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(content), &signed, &complaint
	err := command.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nextstep.With(err, "apt-get install openssh-client, or make release without SIGN_KEY")
	} else if err != nil {
		return nil, nextstep.With(fmt.Errorf("cannot sign with %s: %w: %s", key, err, bytes.TrimSpace(complaint.Bytes())),
			"make release SIGN_KEY=… with the file of a private key, as ssh-keygen -t ed25519 makes it")
	}
	return signed.Bytes(), nil
}

// Verify returns an error if a file is not as the holder of a key has signed it: if the SHA256SUMS next to it has no good
// signature by the public key, or does not list the file with its sum. publicKey is a file with one line, as *.pub.
func Verify(publicKey, file string) error {
	text, err := os.ReadFile(publicKey)
	if err != nil {
		return nextstep.With(err, "transfer the public key to this machine, separately from the bundle")
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		return nextstep.With(fmt.Errorf("%s is not an SSH public key: %w", publicKey, err),
			"ssh-keygen -y -f PRIVATE_KEY, where the bundle was signed, prints the public key")
	}
	folder := filepath.Dir(file)
	again := "unpack the bundle again, from a release that was made with SIGN_KEY, and use the archive in its directory"
	sums, err := os.ReadFile(filepath.Join(folder, Sums))
	if err != nil {
		return nextstep.With(fmt.Errorf("%s cannot be verified: %w", file, err), "%s", again)
	}
	signed, err := os.ReadFile(filepath.Join(folder, Signature))
	if errors.Is(err, fs.ErrNotExist) {
		return nextstep.With(fmt.Errorf("%s is not signed: %w", file, err), "%s", again)
	} else if err != nil {
		return err
	}
	if err := verify(key, sums, signed); err != nil {
		return nextstep.With(fmt.Errorf("%s has no good signature by %s: %s: %w", file, publicKey, filepath.Join(folder, Signature), err),
			"do not use it; %s", again)
	}
	sum, err := sumOf(file)
	if err != nil {
		return nextstep.With(err, "%s", again)
	}
	if line := sum + "  " + filepath.Base(file); !strings.Contains("\n"+string(sums), "\n"+line+"\n") {
		return nextstep.With(fmt.Errorf("%s is not the file that was signed: %s has no line %q", file, filepath.Join(folder, Sums), line),
			"do not use it; %s", again)
	}
	return nil
}

func verify(key ssh.PublicKey, content, armored []byte) error {
	signed, err := sshsig.Unarmor(armored)
	if err != nil {
		return fmt.Errorf("it is not an SSH signature: %w", err)
	}
	err = sshsig.Verify(bytes.NewReader(content), signed, key, signed.HashAlgorithm, Namespace)
	switch {
	case errors.Is(err, sshsig.ErrPublicKeyMismatch):
		return fmt.Errorf("it is by another key: %s, not %s", ssh.FingerprintSHA256(signed.PublicKey), ssh.FingerprintSHA256(key))
	case errors.Is(err, sshsig.ErrNamespaceMismatch):
		return fmt.Errorf("it is for %q, not for %q", signed.Namespace, Namespace)
	case err != nil:
		return fmt.Errorf("it is not a signature of %s: %w", Sums, err)
	}
	return nil
}

// sumOf returns the SHA-256 sum of a file, in hex.
func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return fmt.Sprintf("%x", hash.Sum(nil)), err
}
