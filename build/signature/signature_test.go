// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// newKey writes a key pair to a directory, as ssh-keygen does, and returns it.
func newKey(t *testing.T, folder, name string) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder, name, string(pem.EncodeToMemory(block)))
	write(t, folder, name+".pub", string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	return signer
}

func write(t *testing.T, folder, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func armored(t *testing.T, signer ssh.Signer, content, namespace string) string {
	t.Helper()
	signed, err := sshsig.Sign(strings.NewReader(content), signer, sshsig.HashSHA512, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return string(sshsig.Armor(signed))
}

func TestVerify(t *testing.T) {
	const archive = "the image"
	folder := t.TempDir()
	write(t, folder, "image.tar", archive)
	sum, err := sumOf(filepath.Join(folder, "image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	sums := fmt.Sprintf("%064d  LICENSE\n%s  image.tar\n", 0, sum)
	signer, other := newKey(t, folder, "key"), newKey(t, folder, "other")
	good := armored(t, signer, sums, Namespace)
	for _, test := range []struct {
		name, archive, sums, signature, want string
	}{
		{"good", archive, sums, good, ""},
		{"unsigned", archive, sums, "", "is not signed"},
		{"signature of another file", archive, sums, armored(t, signer, "LICENSE", Namespace), "it is not a signature of SHA256SUMS"},
		{"signature for something else", archive, sums, armored(t, signer, sums, "file"), `it is for "file"`},
		{"another key", archive, sums, armored(t, other, sums, Namespace), "it is by another key: SHA256:"},
		{"truncated signature", archive, sums, good[:len(good)/2], "it is not an SSH signature"},
		{"one byte less", archive, sums, strings.Replace(good, "\n-----END", "", 1), "it is not an SSH signature"},
		{"other sums", archive, sums + "\n", good, "it is not a signature of SHA256SUMS"},
		{"no sums", archive, "", good, "cannot be verified"},
		{"damaged archive", archive + "!", sums, good, "is not the file that was signed"},
		{"truncated archive", archive[1:], sums, good, "is not the file that was signed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, "key.pub", string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
			for name, content := range map[string]string{"image.tar": test.archive, Sums: test.sums, Signature: test.signature} {
				if content != "" {
					write(t, folder, name, content)
				}
			}
			err := Verify(filepath.Join(folder, "key.pub"), filepath.Join(folder, "image.tar"))
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "next: ") {
				t.Errorf("error %v, want one with %q and the next step", err, test.want)
			}
		})
	}
	// Another file with the right sum is not the one that the list names.
	write(t, folder, Sums, sums)
	write(t, folder, Signature, good)
	write(t, folder, "mage.tar", archive)
	for _, file := range []string{"mage.tar", "none.tar"} {
		if err := Verify(filepath.Join(folder, "key.pub"), filepath.Join(folder, file)); err == nil {
			t.Errorf("%s is accepted", file)
		}
	}
	for _, key := range []string{"key", "none.pub"} {
		if err := Verify(filepath.Join(folder, key), filepath.Join(folder, "image.tar")); err == nil || !strings.Contains(err.Error(), "next: ") {
			t.Errorf("with %s as the public key: %v", key, err)
		}
	}
}

// TestSignIsWhatSSHKeygenVerifies signs with a key file, and verifies with ssh-keygen and with Verify.
func TestSignIsWhatSSHKeygenVerifies(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed: apt-get install openssh-client")
	}
	folder := t.TempDir()
	newKey(t, folder, "key")
	key := filepath.Join(folder, "key")
	write(t, folder, "file", "content")
	sum, err := sumOf(filepath.Join(folder, "file"))
	if err != nil {
		t.Fatal(err)
	}
	sums := sum + "  file\n"
	signed, err := Sign(key, []byte(sums))
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder, Sums, sums)
	write(t, folder, Signature, string(signed))
	if err := Verify(key+".pub", filepath.Join(folder, "file")); err != nil {
		t.Error(err)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder, "signers", "release "+string(public))
	verify := exec.Command("ssh-keygen", "-Y", "verify", "-f", "signers", "-I", "release", "-n", Namespace, "-s", Signature)
	verify.Dir, verify.Stdin = folder, bytes.NewReader([]byte(sums))
	if output, err := verify.CombinedOutput(); err != nil {
		t.Errorf("ssh-keygen: %v: %s", err, output)
	}
	if _, err := Sign(filepath.Join(folder, "none"), nil); err == nil || !strings.Contains(err.Error(), "SIGN_KEY") {
		t.Errorf("with a key that does not exist: %v", err)
	}
}
