// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"kube-scheduler-fork/build/image"
	"kube-scheduler-fork/build/source"
)

// released returns a file of the release: its bundle's name with another suffix.
func released(t *testing.T, suffix string) []byte {
	t.Helper()
	path := filepath.Join(output, "release", "kube-scheduler-"+image.Tag(version(t))+"-linux-"+runtime.GOARCH+suffix)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; next: make release", err)
	}
	return content
}

// TestSBOM checks that the SBOMs of the release and in the image list the modules of modules.yaml, and those of upstream,
// as parts of the scheduler, with their licences.
func TestSBOM(t *testing.T) {
	names, err := image.Names(image.Scheduler, version(t), runtime.GOARCH, "")
	if err != nil {
		t.Fatal(err)
	}
	made, err := tarball.ImageFromPath(archive, &names[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Run("release", func(t *testing.T) { checkSBOM(t, released(t, ".spdx.json")) })
	t.Run("image", func(t *testing.T) { checkSBOM(t, readFiles(t, made)[image.SBOMFile(image.Scheduler)[1:]].content) })
}

func checkSBOM(t *testing.T, content []byte) {
	type part struct{ SPDXID, Name, VersionInfo, SourceInfo, LicenseDeclared string }
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
			return linked[p.SPDXID] && p.Name == module.Path && p.VersionInfo == module.Version && p.LicenseDeclared != "NOASSERTION" &&
				strings.HasSuffix(p.SourceInfo, "sum "+module.Sum)
		}
		if !slices.ContainsFunc(document.Packages, listed) {
			t.Errorf("the scheduler does not link %s %s, sum %s", module.Path, module.Version, module.Sum)
		}
	}
}

// TestCycloneDXFollowsItsSchema validates the SBOM against CycloneDX' own schema, which knows SPDX' ids of licences.
func TestCycloneDXFollowsItsSchema(t *testing.T) {
	module, err := run(t, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")
	if err != nil {
		t.Fatalf("%v: %s", err, module)
	}
	compiler := jsonschema.NewCompiler()
	for name, file := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		content, err := os.Open(filepath.Join(module, "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		schema, err := jsonschema.UnmarshalJSON(content)
		if err == nil {
			err = compiler.AddResource("http://cyclonedx.org/schema/"+name, schema)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	content := released(t, ".cdx.json")
	for name, change := range map[string][2]string{
		"the release's": {}, "a licence that SPDX does not have": {`"id": "ISC"`, `"id": "no licence"`},
	} {
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(string(content), change[0], change[1], 1)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(document); (err == nil) != (change[0] == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(content), cdx.BOMFileFormatJSON).Decode(&bom); err != nil || len(*bom.Components) < 150 {
		t.Errorf("CycloneDX' library reads %d components (%v), want modules and patches", len(*bom.Components), err)
	}
}

// TestProvenanceNamesEveryMaterial checks the statement of the release: the image's sum, and each module and each patch
// that the SBOM lists.
func TestProvenanceNamesEveryMaterial(t *testing.T) {
	var statement struct {
		Subject []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct {
					Name   string
					Digest map[string]string
				}
			}
		}
	}
	var document struct {
		Packages []struct{ Name, VersionInfo, SourceInfo string }
		Files    []struct{ FileName string }
	}
	if err := errors.Join(json.Unmarshal(released(t, ".intoto.json"), &statement), json.Unmarshal(released(t, ".spdx.json"), &document)); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, subject := range statement.Subject {
		found[subject.Name+" "+subject.Digest["sha256"]] = true
	}
	if image := fmt.Sprintf("kube-scheduler.tar %x", sha256.Sum256(content)); !found[image] {
		t.Errorf("no subject %s in %v", image, statement.Subject)
	}
	for _, material := range statement.Predicate.BuildDefinition.ResolvedDependencies {
		found[material.Name] = len(material.Digest) > 0
	}
	for _, file := range document.Files {
		if !found[strings.TrimPrefix(file.FileName, "./")] {
			t.Errorf("no material %s", file.FileName)
		}
	}
	for _, part := range document.Packages {
		if strings.Contains(part.SourceInfo, "sum h1:") && !found[part.Name+"@"+part.VersionInfo] {
			t.Errorf("no material %s@%s", part.Name, part.VersionInfo)
		}
	}
}
