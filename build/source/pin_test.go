// SPDX-License-Identifier: Apache-2.0

package source

import (
	"path/filepath"
	"strings"
	"testing"
)

const valid = `# comment
KUBERNETES_VERSION=v1.23.17

KUBERNETES_COMMIT=953be8927218ec8067e1af2641e540238ffd7576
KUBERNETES_SUM=h1:nzPjHGp+Qbh44wHxPv4DJp4Znot26yuENYLMu4Av6ZU=
GO_VERSION=go1.27.4
`

func TestReadPin(t *testing.T) {
	got, err := ReadPin(writeFile(t, "upstream.version", valid))
	if err != nil {
		t.Fatal(err)
	}
	want := Pin{
		Version:   "v1.23.17",
		Commit:    "953be8927218ec8067e1af2641e540238ffd7576",
		Sum:       "h1:nzPjHGp+Qbh44wHxPv4DJp4Znot26yuENYLMu4Av6ZU=",
		GoVersion: "go1.27.4",
	}
	if got != want {
		t.Errorf("ReadPin = %+v, want %+v", got, want)
	}
}

func TestReadPinOfThisProject(t *testing.T) {
	if _, err := ReadPin("../../upstream.version"); err != nil {
		t.Error(err)
	}
}

func TestReadPinRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ old, new, want string }{
		"a missing line":    {"GO_VERSION=go1.27.4\n", "", "no line GO_VERSION"},
		"a key twice":       {"GO_VERSION=go1.27.4\n", "GO_VERSION=go1.27.4\nGO_VERSION=go1.27.4\n", ":7: GO_VERSION occurs twice"},
		"an unknown key":    {"GO_VERSION", "GOVERSION", `unknown key "GOVERSION"`},
		"another minor":     {"v1.23.17", "v1.24.0", ":2: KUBERNETES_VERSION"},
		"a short commit":    {"953be8927218", "953b", ":4: KUBERNETES_COMMIT"},
		"a go.mod sum":      {"=h1:", "=h2:", ":5: KUBERNETES_SUM"},
		"a quoted value":    {"=go1.27.4", "='go1.27.4'", ":6: GO_VERSION"},
		"something else":    {"# comment", "comment", `unknown key "comment"`},
		"a trailing remark": {"go1.27.4", "go1.27.4 # newest", ":6: GO_VERSION"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadPin(writeFile(t, "upstream.version", strings.Replace(valid, tt.old, tt.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ReadPin = %v, want an error that contains %q", err, tt.want)
			}
		})
	}
	if _, err := ReadPin(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("ReadPin of no file succeeded")
	}
}

func TestStagingVersion(t *testing.T) {
	if got := StagingVersion("v1.23.17"); got != "v0.23.17" {
		t.Errorf("StagingVersion = %s, want v0.23.17", got)
	}
}
