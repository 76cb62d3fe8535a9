// SPDX-License-Identifier: Apache-2.0

package vulncheck

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"
)

// messages are the kinds of messages of govulncheck: one vulnerability at three levels, and one of a module only.
const messages = `{"config": {"protocol_version": "v1.0.0"}}
{"osv": {"id": "GO-1", "affected": [{"package": {"name": "example.org/a"}, "ecosystem_specific": {"imports": [{"path": "example.org/a/b"}]}}]}}
{"finding": {"osv": "GO-1", "trace": [{"module": "example.org/a", "version": "v1.0.0"}]}}
{"finding": {"osv": "GO-1", "trace": [{"module": "example.org/a", "version": "v1.0.0", "package": "example.org/a/b"}]}}
{"finding": {"osv": "GO-1", "trace": [
  {"module": "example.org/a", "version": "v1.0.0", "package": "example.org/a/b", "function": "F"},
  {"module": "example.org/main", "package": "example.org/main", "function": "main"}]}}
{"finding": {"osv": "GO-2", "trace": [{"module": "example.org/c", "version": "v2.0.0"}]}}`

func TestParse(t *testing.T) {
	called := Found{Program: "p", ID: "GO-1", Module: "example.org/a", Version: "v1.0.0", Package: "example.org/a/b", Function: "F", Named: true}
	required := Found{Program: "p", ID: "GO-2", Module: "example.org/c", Version: "v2.0.0"}
	got, err := parse("p", []byte(messages))
	if want := []Found{called, required}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("parse = %v, %v; want %v", got, err, want)
	}
	if _, err := parse("p", []byte(messages[:len(messages)-4])); err == nil {
		t.Error("parse takes output that is cut off")
	}
}

func TestExplain(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":  "module k8s.io/kubernetes\n\ngo 1.26\n",
		"main.go": "package main\n\nimport _ \"k8s.io/kubernetes/pkg/scheduler\"\n\nfunc main() {}\n",
		"pkg/scheduler/s.go": "package scheduler\n\nimport _ \"k8s.io/kubernetes/pkg/volume/portworx\"\n" +
			"import _ \"k8s.io/kubernetes/pkg/volume/util/subpath\"\n",
		"pkg/volume/portworx/p.go":                   "package portworx\n",
		"pkg/volume/util/subpath/subpath_linux.go":   "package subpath\n",
		"pkg/volume/util/subpath/subpath_windows.go": "package subpath\n",
	} {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	program := Program{Name: "p", Directory: folder, Package: "."}
	found, err := parse("p", []byte(messages))
	if err != nil {
		t.Fatal(err)
	}
	explained, left, err := Explain(t.Context(), program, "v1.23.17", found)
	if err != nil {
		t.Fatal(err)
	}
	// Of Kubernetes' own vulnerabilities only that of the linked package is left; a file for Windows is not compiled.
	portworx := Found{Program: "p", ID: "GO-2025-4240", Module: kubernetes, Version: "v1.23.17", Package: "k8s.io/kubernetes/pkg/volume/portworx"}
	if want := []Found{found[0], portworx}; !reflect.DeepEqual(left, want) {
		t.Errorf("left = %v, want %v", left, want)
	}
	if want := 1 + len(ofKubernetes) - 1; len(explained) != want || explained[0] != found[1] {
		t.Errorf("explained = %v, want %d, with %v", explained, want, found[1])
	}

	document, err := Document(explained, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if added, gone := Compare(document, explained); len(added)+len(gone) != 0 {
		t.Errorf("Compare = %v, %v, want nothing", added, gone)
	}
	if _, gone := Compare(document, explained[1:]); !slices.Equal(gone, []string{"GO-2"}) {
		t.Errorf("gone = %v, want GO-2", gone)
	}
	newer, other := found[1], found[1]
	newer.Version, other.Program = "v2.0.1", "q"
	if added, _ := Compare(document, []Found{newer, other}); len(added) != 2 {
		t.Errorf("added = %v, want another version and another program", added)
	}

	// What the table lacks is open, and what govulncheck sees called although the table knows better.
	unknown := Found{Program: "p", ID: "GO-3", Module: kubernetes, Version: "v1.23.17"}
	called := Found{Program: "p", ID: "GO-2023-1864", Module: kubernetes, Package: "a", Function: "F", Named: true}
	if _, left, err := Explain(t.Context(), program, "v1.23.17", []Found{unknown, called}); err != nil || len(left) != 2 {
		t.Errorf("left = %v, %v, want %v and %v", left, err, unknown, called)
	}
}
