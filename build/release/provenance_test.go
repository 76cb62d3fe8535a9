// SPDX-License-Identifier: Apache-2.0

package release

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"kube-scheduler-fork/build/signature"
)

func TestProvenance(t *testing.T) {
	options, folder := project(t, "amd64"), t.TempDir()
	options.ProjectCommit = "0123456789abcdef0123456789abcdef01234567"
	bundle, _ := mustWrite(t, folder, options)
	name := strings.TrimSuffix(filepath.Base(bundle), ".tar.gz")
	// protojson refuses fields that the types do not have.
	var statement intoto.Statement
	if err := protojson.Unmarshal([]byte(readFile(t, filepath.Join(folder, name+".intoto.json"))), &statement); err != nil {
		t.Fatal(err)
	}
	content, err := protojson.Marshal(statement.Predicate)
	if err != nil {
		t.Fatal(err)
	}
	var predicate slsa.Provenance
	if err := protojson.Unmarshal(content, &predicate); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(statement.Validate(), predicate.Validate()); err != nil || statement.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("the statement is not valid: %v, %s", err, statement.PredicateType)
	}
	subjects := map[string]string{}
	for _, subject := range statement.Subject {
		subjects[subject.Name] = subject.Digest["sha256"]
	}
	want := map[string]string{}
	for name, path := range map[string]string{
		name + ".tar.gz": bundle, name + ".spdx.json": filepath.Join(folder, name+".spdx.json"), name + ".cdx.json": filepath.Join(folder, name+".cdx.json"),
		"kube-scheduler.tar": options.Image, "scheduler-extender.tar": options.Extender,
	} {
		want[name] = fmt.Sprintf("%x", sha256.Sum256([]byte(readFile(t, path))))
	}
	if diff := cmp.Diff(want, subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	parameters := predicate.BuildDefinition.ExternalParameters.AsMap()
	if diff := cmp.Diff(map[string]any{"UPSTREAM": "v1.23.17", "ARCH": "amd64", "VERSION_SUFFIX": "fork", "modules": []any{"example.org/inlined/v2@v2.0.1"}}, parameters); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	materials := map[string]map[string]string{}
	for _, one := range predicate.BuildDefinition.ResolvedDependencies {
		materials[one.Name] = one.Digest
	}
	for name, digest := range map[string]map[string]string{
		"k8s.io/kubernetes@v1.23.17":           {"gitCommit": commit, "dirHash": "9f33e31c6a7e41b878e301f13efe03269e199e8b76eb2b843582ccbb802fe995"},
		"this project":                         {"gitCommit": options.ProjectCommit},
		"bin/go of go1.27.4 for linux/amd64":   {"sha256": fmt.Sprintf("%x", sha256.Sum256([]byte("the go command\n")))},
		"patches/0100-one.patch":               {"sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(readFile(t, filepath.Join(options.Patches, "0100-one.patch")))))},
		"example.org/used@v1.0.0+incompatible": {"dirHash": "5529d3b180a79451da336fe280ed61e97dc703bd637286d0bb17a6824ab8cd8a"},
	} {
		if diff := cmp.Diff(digest, materials[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, listed := materials["k8s.io/staged@v0.23.17"]; listed || len(materials) != 7 {
		t.Errorf("%d materials, with a part of upstream's source: %v", len(materials), materials)
	}
}

// TestASignedReleaseIsVerifiedAsThePageSays runs the commands of docs/air-gapped.md on a signed release, and on one that
// was changed.
func TestASignedReleaseIsVerifiedAsThePageSays(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed: apt-get install openssh-client")
	}
	_, block, found := strings.Cut(readFile(t, "../../docs/air-gapped.md"), "<!-- test: verify -->\n```sh\n")
	commands, _, closed := strings.Cut(block, "```\n")
	if !found || !closed {
		t.Fatal("docs/air-gapped.md has no commands to verify a release")
	}
	options, folder := project(t, "amd64"), t.TempDir()
	key := filepath.Join(t.TempDir(), "release")
	if output, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "release", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, output)
	}
	run := func() (string, error) {
		command := exec.Command("bash", "-euc", commands)
		command.Dir = folder
		output, err := command.CombinedOutput()
		return string(output), err
	}
	writeFile(t, filepath.Join(folder, "release.pub"), readFile(t, key+".pub"))
	options.SignKey = key
	bundle, _ := mustWrite(t, folder, options)
	if output, err := run(); err != nil || !strings.Contains(output, `Good "kube-scheduler-release" signature`) {
		t.Errorf("%v: %s", err, output)
	}
	_, contents := headers(t, bundle)
	unpacked := filepath.Join(folder, Name(version, "amd64"))
	for _, name := range []string{"kube-scheduler.tar", signature.Sums, signature.Signature} {
		writeFile(t, filepath.Join(unpacked, name), contents[Name(version, "amd64")+"/"+name])
	}
	if err := signature.Verify(key+".pub", filepath.Join(unpacked, "kube-scheduler.tar")); err != nil {
		t.Error(err)
	}

	sums := filepath.Join(folder, signature.Sums)
	writeFile(t, sums, readFile(t, sums)+"\n")
	if output, err := run(); err == nil {
		t.Errorf("changed sums are verified: %s", output)
	}
	// A later release without a key must not keep the signature.
	options.SignKey = ""
	mustWrite(t, folder, options)
	if _, err := os.Stat(filepath.Join(folder, signature.Signature)); err == nil {
		t.Error("an unsigned release has the signature of an earlier one")
	}
	if output, err := run(); err == nil {
		t.Errorf("an unsigned release is verified: %s", output)
	}
}
