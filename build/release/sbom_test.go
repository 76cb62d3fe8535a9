// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"

	"kube-scheduler-fork/build/source"
)

// documentOf reads the SBOM of a bundle, and its bytes.
func documentOf(t *testing.T, options Options) (*v2_3.Document, []byte) {
	t.Helper()
	bundle, beside := mustWrite(t, t.TempDir(), options)
	content, err := os.ReadFile(beside)
	if err != nil {
		t.Fatal(err)
	}
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

	// What the schema of SPDX 2.3 demands and the library does not look at.
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

// facts renders the relationships, with names for identifiers.
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
	const bundle = "kube-scheduler-v1.23.17_fork.0123456789ab-linux-arm64 V"
	want := []string{
		"document DESCRIBES " + bundle,
		bundle + " CONTAINS kube-scheduler image V",
		bundle + " CONTAINS kube-scheduler-swap V",
		bundle + " CONTAINS kubectl-scheduling V",
		bundle + " CONTAINS ./patches/0100-one.patch",
		bundle + " CONTAINS ./patches/0200-two.patch",
		"./patches/0100-one.patch PATCH_APPLIED k8s.io/kubernetes v1.23.17",
		"./patches/0200-two.patch PATCH_APPLIED k8s.io/kubernetes v1.23.17",
		"kube-scheduler image V CONTAINS kube-scheduler V",
		"kube-scheduler image V CONTAINS kube-log-runner V",
		"golang.org/x/crypto/x509roots/fallback v0.1.0 DATA_FILE_OF kube-scheduler image V",
		"kube-scheduler V GENERATED_FROM k8s.io/kubernetes v1.23.17",
		"kube-log-runner V GENERATED_FROM k8s.io/kubernetes v1.23.17",
		"go GO BUILD_TOOL_OF kube-scheduler V",
		"go GO BUILD_TOOL_OF kube-log-runner V",
		"go GO BUILD_TOOL_OF kube-scheduler-swap V",
		"go GO BUILD_TOOL_OF kubectl-scheduling V",
		"kube-scheduler V STATIC_LINK stdlib GO",
		"kube-log-runner V STATIC_LINK stdlib GO",
		"kube-scheduler-swap V STATIC_LINK stdlib GO",
		"kubectl-scheduling V STATIC_LINK stdlib GO",
		// Of a replaced module the replacement's version; of a package of which nothing is left, nothing.
		"kube-scheduler V STATIC_LINK example.org/used v1.0.0+incompatible",
		"kube-scheduler V STATIC_LINK example.org/inlined/v2 v2.0.1",
		"kube-scheduler V STATIC_LINK k8s.io/staged v0.23.17",
		// A command that nothing imports lies in its staging module all the same.
		"kube-log-runner V STATIC_LINK k8s.io/logs v0.23.17",
		"kube-scheduler-swap V STATIC_LINK example.org/Fork v1.2.3",
	}
	slices.Sort(want)
	if got := facts(document); !slices.Equal(got, want) {
		t.Errorf("the SBOM says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	sumOf := func(path string) string {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", sha256.Sum256(content))
	}
	parts := map[string]*v2_3.Package{}
	for _, part := range document.Packages {
		parts[part.PackageName] = part
	}
	for name, path := range map[string]string{
		"kube-scheduler image": options.Image, "kube-scheduler-swap": options.Swap, "kubectl-scheduling": options.Kubectl,
		"kube-scheduler":  filepath.Join(compiled(t), "arm64/kube-scheduler"),
		"kube-log-runner": filepath.Join(compiled(t), "arm64/kube-log-runner"),
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
		"example.org/inlined/v2": "Go module, sum " + inlinedSum,
		// Upstream vendors one package of it; another is carried, as a dependency.
		"example.org/used": "Go module in vendor/ of Kubernetes v1.23.17, sum h1:used=; Go module, sum " + carriedSum,
		"k8s.io/staged":    "staging/src/k8s.io/staged of Kubernetes v1.23.17",
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

// TestLinkedModulesOfTheRealScheduler holds what is read from the binary that `make image` made against what the go
// command says of its imports. Everything found must be imported. The other way round less is found: the linker keeps
// nothing of some packages; then their module's path must stand nowhere in the binary.
func TestLinkedModulesOfTheRealScheduler(t *testing.T) {
	output, err := filepath.Abs(filepath.Join("../..", "_output"))
	if err != nil {
		t.Fatal(err)
	}
	if folder := os.Getenv("OUTPUT"); folder != "" {
		output = folder
	}
	pin, err := source.ReadPin("../../upstream.version")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(output, "bin/linux", runtime.GOARCH, "kube-scheduler")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; next: make image", err)
	}
	tree := filepath.Join(output, "kubernetes")
	options := Options{Tree: tree, Kubernetes: pin.Version, Modules: "../../modules.yaml"}
	vendor, err := readTree(options)
	if err != nil {
		t.Fatal(err)
	}
	binary, err := inspect("kube-scheduler", content, runtime.GOARCH, vendor, "")
	if err != nil {
		t.Fatal(err)
	}
	// In a Go path, as upstream's make compiles it: what is carried is in vendor/, and go.mod does not know it.
	goPath := t.TempDir()
	place := filepath.Join(goPath, "src/k8s.io")
	if err := os.MkdirAll(place, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(tree, filepath.Join(place, "kubernetes")); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "list", "-deps", "-tags=selinux,notest", "k8s.io/kubernetes/cmd/kube-scheduler")
	command.Dir = goPath
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GO111MODULE=off", "GOPATH="+goPath, "CGO_ENABLED=0", "GOOS=linux")
	listed, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", command.Args, err)
	}
	modulesFile, err := os.ReadFile(filepath.Join(tree, "vendor/modules.txt"))
	if err != nil {
		t.Fatal(err)
	}
	vendorList := source.ParseVendorList(modulesFile)
	imported := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		name, isVendored := strings.CutPrefix(strings.TrimSpace(line), kubernetes+"/vendor/")
		if !isVendored {
			continue
		}
		var module *source.Vendored
		for _, candidate := range vendorList {
			inside := name == candidate.Module.Path || strings.HasPrefix(name, candidate.Module.Path+"/")
			if inside && candidate.Module.Version != "" && (module == nil || len(candidate.Module.Path) > len(module.Module.Path)) {
				module = candidate
			}
		}
		if module == nil {
			t.Fatalf("vendor/modules.txt names no module of %s", name)
		}
		version := cmp.Or(module.Replacement.Version, module.Module.Version)
		if version == "v0.0.0" {
			version = source.StagingVersion(pin.Version)
		}
		imported[module.Module.Path] = version
	}
	linked := map[string]bool{}
	for _, module := range binary.Modules {
		linked[module.Path] = true
		if imported[module.Path] != module.Version {
			t.Errorf("%s %s is in the binary; go list says %q", module.Path, module.Version, imported[module.Path])
		}
	}
	carried, err := source.ReadModules(options.Modules)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range carried {
		if !slices.ContainsFunc(binary.Modules, func(module Module) bool {
			return module.Path == entry.Path && module.Version == entry.Version && module.Origin == "Go module, sum "+entry.Sum
		}) {
			t.Errorf("nothing that modules.yaml carries of %s is in the binary", entry.Path)
		}
	}
	// Of a dependency nothing may be left.
	for _, entry := range source.All(carried) {
		for _, name := range entry.ImportPaths() {
			if module, known := vendor.module(name); !known || module.Origin != "Go module, sum "+entry.Sum {
				t.Errorf("%s is of %+v, want it to be carried", name, module)
			}
		}
	}
	for _, module := range binary.Modules {
		if err := addLicences(map[string][]byte{}, module.Path, module.Folder, true); err != nil {
			t.Error(err)
		}
	}
	var dropped []string
	for module := range imported {
		if linked[module] {
			continue
		}
		dropped = append(dropped, module)
		if bytes.Contains(content, []byte(module)) {
			t.Errorf("%s is imported and the binary names it, but it was not found", module)
		}
	}
	slices.Sort(dropped)
	t.Logf("%d modules are linked; %d more are imported, and nothing of them is in the binary: %v", len(linked), len(dropped), dropped)
	if len(linked) < 80 {
		t.Errorf("only %d modules were found", len(linked))
	}
}
