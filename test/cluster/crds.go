// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"path/filepath"
	"testing"

	"kube-scheduler-fork/build/source"
)

// CRDs writes the CustomResourceDefinitions that plugins of other projects need into a folder, and gives its path. They
// are those of the modules that the project's modules.yaml names; root is the project's folder.
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
