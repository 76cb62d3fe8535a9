// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"kube-scheduler-fork/build/localcluster"
)

// Program returns the value of an environment variable that names a program. It fails the test if the variable is
// missing, because a test that is skipped looks like success.
func Program(t testing.TB, variable string) string {
	t.Helper()
	file := os.Getenv(variable)
	if file == "" {
		t.Fatalf("the environment variable %s is not set; next: run this test with make, which builds its inputs and names them "+
			"(make help lists the target)", variable)
	}
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("%s: %v; next: build it, and give its absolute path", variable, err)
	}
	if !filepath.IsAbs(file) {
		t.Fatalf("%s=%s: go test runs in another directory; next: give its absolute path", variable, file)
	}
	return file
}

// Read returns the content of a file. It fails the test if it cannot be read.
func Read(t testing.TB, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Write writes a file that only its owner may read. It fails the test if it cannot be written.
func Write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// WriteConfig writes a scheduler's configuration with fields, or with none, and returns its path.
func WriteConfig(t testing.TB, fields string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	Write(t, file, "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"+fields)
	return file
}

// Create creates the objects of manifests in YAML.
func (c *Cluster) Create(t testing.TB, manifests string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	Write(t, file, manifests)
	c.CreateFrom(t, file)
}

// CreateFrom creates the objects of files and directories.
func (c *Cluster) CreateFrom(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		objects, err := localcluster.ReadObjects(path)
		if err == nil {
			err = c.CreateObjects(t.Context(), objects...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
