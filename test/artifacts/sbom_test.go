// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"kube-scheduler-fork/build/image"
	"kube-scheduler-fork/build/source"
)

// TestSBOM checks that the SBOM of the release lists the modules of modules.yaml, and those of upstream, as parts of
// the scheduler.
func TestSBOM(t *testing.T) {
	path := filepath.Join(output, "release", "kube-scheduler-"+image.Tag(version(t))+"-linux-"+runtime.GOARCH+".spdx.json")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; next: make release", err)
	}
	type part struct{ SPDXID, Name, VersionInfo, SourceInfo string }
	var document struct {
		Packages      []part
		Relationships []struct{ SpdxElementID, RelationshipType, RelatedSpdxElement string }
	}
	if err := json.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for _, one := range document.Relationships {
		if one.SpdxElementID == "SPDXRef-binary-kube-scheduler" && one.RelationshipType == "STATIC_LINK" {
			linked[one.RelatedSpdxElement] = true
		}
	}
	if len(linked) < 80 {
		t.Errorf("the scheduler links %d modules, want at least 80", len(linked))
	}
	modules, err := source.ReadModules(filepath.Join(root, "modules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range modules {
		listed := func(p part) bool {
			return linked[p.SPDXID] && p.Name == module.Path && p.VersionInfo == module.Version &&
				strings.HasSuffix(p.SourceInfo, "sum "+module.Sum)
		}
		if !slices.ContainsFunc(document.Packages, listed) {
			t.Errorf("the scheduler does not link %s %s, sum %s", module.Path, module.Version, module.Sum)
		}
	}
}
