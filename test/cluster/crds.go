// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"path/filepath"
	"testing"

	"kube-scheduler-fork/build/source"
)

// CRDs writes the CustomResourceDefinitions that plugins of other projects need to a directory, and returns its path.
// They are those of the modules in the project's modules.yaml; root is the project's directory.
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
	return folder
}
