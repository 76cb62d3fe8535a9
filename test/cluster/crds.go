// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"kube-scheduler-fork/build/source"
)

// CRDs writes the CustomResourceDefinitions that plugins need to a directory, as in a release bundle, and returns its
// path. They are those of manifests/crds and of the modules in modules.yaml; root is the project's directory.
func CRDs(t testing.TB, root string) string {
	t.Helper()
	modules, err := source.ReadModules(filepath.Join(root, "modules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := source.WriteCRDs(t.Context(), modules, folder); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(root, "manifests/crds"))); err != nil {
		t.Fatal(err)
	}
	return folder
}
