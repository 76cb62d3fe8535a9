// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"

	"kube-scheduler-fork/build/image"
)

// documentOf returns the SBOM of a bundle, decoded and as bytes.
func documentOf(t *testing.T, options Options) (*v2_3.Document, []byte) {
	t.Helper()
	bundle, beside := mustWrite(t, t.TempDir(), options)
	content := []byte(readFile(t, beside))
	_, contents := headers(t, bundle)
	if contents[Name(options.Version, options.Architecture)+"/sbom.spdx.json"] != string(content) {
		t.Error("the SBOM in the bundle is not the one beside it")
	}
	var document v2_3.Document
	if err := spdxjson.ReadInto(bytes.NewReader(content), &document); err != nil {
		t.Fatal(err)
	}
	return &document, content
}

func TestSBOMIsValid(t *testing.T) {
	options := project(t, "amd64")
	document, content := documentOf(t, options)
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	var again bytes.Buffer
	if err := spdxjson.Write(document, &again, spdxjson.Indent("  "), spdxjson.EscapeHTML(false)); err != nil {
		t.Fatal(err)
	}
	if again.String() != string(content) {
		t.Error("read and written again, the SBOM is another")
	}
	if document.SPDXVersion != "SPDX-2.3" || document.DataLicense != "CC0-1.0" || document.SPDXIdentifier != "DOCUMENT" ||
		document.CreationInfo.Created != "2023-02-22T13:26:30Z" || len(document.CreationInfo.Creators) == 0 {
		t.Errorf("the document's own facts are wrong: %+v, %+v", document, document.CreationInfo)
	}
	if !regexp.MustCompile(`^https://spdx\.org/spdxdocs/[A-Za-z0-9._-]+-[0-9a-f]{64}$`).MatchString(document.DocumentNamespace) {
		t.Errorf("the namespace is %q", document.DocumentNamespace)
	}

	// The schema of SPDX 2.3 requires this, and the library does not check it.
	identifier := regexp.MustCompile(`^[A-Za-z0-9.-]+$`)
	hex := map[common.ChecksumAlgorithm]*regexp.Regexp{
		common.SHA1: regexp.MustCompile(`^[0-9a-f]{40}$`), common.SHA256: regexp.MustCompile(`^[0-9a-f]{64}$`),
	}
	seen := map[common.ElementID]bool{}
	element := func(id common.ElementID, checksums []common.Checksum) {
		if !identifier.MatchString(string(id)) || seen[id] {
			t.Errorf("identifier %q cannot be one, or is not the only one", id)
		}
		seen[id] = true
		for _, checksum := range checksums {
			if form := hex[checksum.Algorithm]; form == nil || !form.MatchString(checksum.Value) {
				t.Errorf("%s: checksum %+v", id, checksum)
			}
		}
	}
	purpose := []string{"APPLICATION", "LIBRARY", "CONTAINER", "SOURCE", "INSTALL"}
	for _, part := range document.Packages {
		element(part.PackageSPDXIdentifier, part.PackageChecksums)
		if part.PackageName == "" || part.PackageVersion == "" || part.PackageDownloadLocation == "" || part.PackageCopyrightText == "" ||
			part.PackageLicenseConcluded == "" || part.PackageLicenseDeclared == "" || part.FilesAnalyzed ||
			!slices.Contains(purpose, part.PrimaryPackagePurpose) {
			t.Errorf("package %+v lacks something", part)
		}
		for _, reference := range part.PackageExternalReferences {
			if strings.ContainsAny(reference.Locator, " +") {
				t.Errorf("%s: locator %q holds what must be escaped", part.PackageName, reference.Locator)
			}
		}
	}
	for _, file := range document.Files {
		element(file.FileSPDXIdentifier, file.Checksums)
		if !slices.ContainsFunc(file.Checksums, func(c common.Checksum) bool { return c.Algorithm == common.SHA1 }) {
			t.Errorf("%s has no SHA-1", file.FileName)
		}
	}

	options.Created = options.Created.Add(time.Second)
	if other, _ := documentOf(t, options); other.DocumentNamespace == document.DocumentNamespace {
		t.Error("two documents have the same namespace")
	}
}

// facts renders the relationships, with names instead of identifiers.
func facts(document *v2_3.Document) []string {
	names := map[common.ElementID]string{"DOCUMENT": "document"}
	for _, part := range document.Packages {
		names[part.PackageSPDXIdentifier] = part.PackageName + " " + part.PackageVersion
	}
	for _, file := range document.Files {
		names[file.FileSPDXIdentifier] = file.FileName
	}
	var lines []string
	for _, one := range document.Relationships {
		line := names[one.RefA.ElementRefID] + " " + one.Relationship + " " + names[one.RefB.ElementRefID]
		lines = append(lines, strings.NewReplacer(version, "V", runtime.Version(), "GO").Replace(line))
	}
	slices.Sort(lines)
	return lines
}

func TestSBOMSaysWhatIsInTheBundle(t *testing.T) {
	options := project(t, "arm64")
	document, _ := documentOf(t, options)
	if diff := cmp.Diff(want(t, "sbom", "arm64"), facts(document)); diff != "" {
		t.Errorf("relationships (-want +got):\n%s", diff)
	}

	sumOf := func(path string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(readFile(t, path)))) }
	parts := map[string]*v2_3.Package{}
	for _, part := range document.Packages {
		parts[part.PackageName] = part
	}
	for name, path := range map[string]string{
		"kube-scheduler image": options.Image, "kube-scheduler-swap": options.Swap, "kubectl-scheduling": options.Kubectl,
		"kube-scheduler": tool(t, "arm64"), "kube-log-runner": tool(t, "arm64"),
	} {
		if checksums := parts[name].PackageChecksums; len(checksums) != 1 || checksums[0].Value != sumOf(path) {
			t.Errorf("%s has the checksums %v, want the SHA-256 of %s", name, checksums, path)
		}
	}
	for name, locator := range map[string]string{
		"kube-scheduler":    "pkg:generic/kube-scheduler@v1.23.17%2Bfork.0123456789ab",
		"k8s.io/kubernetes": "pkg:golang/k8s.io/kubernetes@v1.23.17",
		"example.org/used":  "pkg:golang/example.org/used@v1.0.0%2Bincompatible",
		"example.org/Fork":  "pkg:golang/example.org/fork@v1.2.3",
		"stdlib":            "pkg:golang/stdlib@" + strings.TrimPrefix(runtime.Version(), "go"),
	} {
		if references := parts[name].PackageExternalReferences; len(references) == 0 || references[0].Locator != locator {
			t.Errorf("%s has the references %v, want %s", name, references, locator)
		}
	}
	for name, origin := range map[string]string{
		"k8s.io/kubernetes":      "commit " + commit + ", Go module sum " + sum,
		"example.org/inlined/v2": "Go module in vendor/, sum h1:d2m3sFjloqoIUQU3TsHBgj6qg/BVGlTBeHDUmyJnXKk=",
		"example.org/used":       "Go module in vendor/, sum h1:VSnTsYCnlFHaM2/igO1h6X3HA71jcobQuxemgkq4zYo=",
		"k8s.io/staged":          "staging/src/k8s.io/staged of Kubernetes v1.23.17",
	} {
		if got := parts[name].PackageSourceInfo; got != origin {
			t.Errorf("%s comes from %q, want %q", name, got, origin)
		}
	}
	if got, want := document.Files[0].Checksums[0].Value, sumOf(filepath.Join(options.Patches, "0100-one.patch")); got != want {
		t.Errorf("the first patch has the SHA-256 %s, want %s", got, want)
	}
}

func TestNamesThatDifferInWhatAnIdentifierCannotHoldStayTwo(t *testing.T) {
	list := inventory{known: map[common.ElementID]*v2_3.Package{}, Document: &v2_3.Document{}}
	first := list.module(Module{Path: "example.org/a_b", Version: "v1.0.0", Origin: "here"})
	second := list.module(Module{Path: "example.org/a-b", Version: "v1.0.0", Origin: "here"})
	third := list.module(Module{Path: "example.org/a_b", Version: "v1.0.0", Origin: "there"})
	if first == second || first != third || len(list.Packages) != 2 {
		t.Errorf("identifiers %s, %s, %s for two modules, the first of them given twice", first, second, third)
	}
	if got := list.Packages[0].PackageSourceInfo; got != "here; there" {
		t.Errorf("one module from two places has the origin %q", got)
	}
}

func TestLicenceOf(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	text := readFile(t, filepath.Join(strings.TrimSpace(string(root)), "LICENSE"))
	for name, folder := range map[string]map[string]string{
		"BSD-3-Clause": {"LICENSE": text, "COPYING.txt": text, "PATENTS": "no licence"},
		unknown:        {"license.md": "ask the author", "license.go": text},
	} {
		top := t.TempDir()
		for file, content := range folder {
			writeFile(t, filepath.Join(top, file), content)
		}
		if got := licenceOf(top); got != name {
			t.Errorf("the licence is %s, want %s", got, name)
		}
	}
}

// TestDescribeImage checks that the SBOM for a file in an image has what the bundle's has of that image, except what
// depends on that file.
func TestDescribeImage(t *testing.T) {
	options := project(t, "amd64")
	content, err := DescribeImage(options, image.Scheduler, tool(t, "amd64"), tool(t, "amd64"))
	if err != nil {
		t.Fatal(err)
	}
	var document v2_3.Document
	if err := spdxjson.ReadInto(bytes.NewReader(content), &document); err != nil {
		t.Fatal(err)
	}
	var part []string
	for _, line := range want(t, "sbom", "amd64") {
		if !strings.Contains(line, "TOP") && !regexp.MustCompile(`linux-amd64|extender|kubectl-scheduling|kube-scheduler-swap|kube-scheduler-simulate|Fork`).MatchString(line) {
			part = append(part, line)
		}
	}
	if diff := cmp.Diff(append([]string{"document DESCRIBES kube-scheduler image V"}, part...), facts(&document), cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("relationships (-want +got):\n%s", diff)
	}
	contained := document.Packages[0]
	if contained.PackageName != "kube-scheduler image" || len(contained.PackageChecksums) > 0 || strings.Contains(contained.PackageComment, "id") {
		t.Errorf("the image is described by %+v, want nothing that depends on this document", contained)
	}
}

func TestCycloneDX(t *testing.T) {
	options := project(t, "amd64")
	files, _, err := assemble(options)
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(named(files, "sbom.cdx.json")), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	document, _ := documentOf(t, options)
	if got, want := len(*bom.Components)+1, len(document.Packages)+len(document.Files); got != want {
		t.Errorf("%d components, want %d, as in the SPDX document", got, want)
	}
	of := map[string][]string{}
	for _, one := range *bom.Dependencies {
		of[one.Ref] = *one.Dependencies
	}
	for whole, part := range map[string]string{
		bom.Metadata.Component.BOMRef: "image-kube-scheduler",
		"image-kube-scheduler":        "binary-kube-scheduler",
		"binary-kube-scheduler":       "module-example.org-used-v1.0.0-incompatible",
		"kubernetes-source":           "patch-0100-one.patch",
	} {
		if !slices.Contains(of[whole], part) {
			t.Errorf("%s depends on %v, want %s too", whole, of[whole], part)
		}
	}
}
