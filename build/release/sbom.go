// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/package-url/packageurl-go"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"
	gomodule "golang.org/x/mod/module"

	"kube-scheduler-fork/build/image"
	"kube-scheduler-fork/build/nextstep"
)

// unknown is SPDX's word for a missing value.
const unknown = "NOASSERTION"

// Licences that upstream declares for all of its own source.
const (
	kubernetesLicence = "Apache-2.0"
	goLicence         = "BSD-3-Clause"
)

// inventory is an SPDX document under construction.
type inventory struct {
	*v2_3.Document
	known map[common.ElementID]*v2_3.Package
	// containers are what contains the binaries, by the binaries' names.
	containers map[string][]common.ElementID
}

func newInventory(options Options, name string) inventory {
	return inventory{
		known: map[common.ElementID]*v2_3.Package{}, containers: map[string][]common.ElementID{}, Document: &v2_3.Document{
			SPDXVersion:    v2_3.Version,
			DataLicense:    v2_3.DataLicense,
			SPDXIdentifier: "DOCUMENT",
			DocumentName:   name,
			DocumentComment: "STATIC_LINK names the modules of all packages that a binary is compiled from: the go command lists them in the " +
				"tree of Kubernetes; the others list theirs. The linker may have left out all of a module. Licences are " +
				"detected in the modules' files.",
			CreationInfo: &v2_3.CreationInfo{
				Creators: []common.Creator{{CreatorType: "Tool", Creator: "kube-scheduler-build"}},
				Created:  options.Created.UTC().Format("2006-01-02T15:04:05Z"),
				CreatorComment: "The time is that of upstream's commit, not that of the build, " +
					"so that the same inputs make the same document.",
			},
		},
	}
}

// describe returns the contents of a bundle as SPDX 2.3 JSON: the images and the binaries, the modules of each binary,
// the Go that compiled them, the source of Kubernetes, and the patches that were applied to it.
func describe(options Options, images []unpacked, binaries map[string]Binary, roots Module) inventory {
	list := newInventory(options, Name(options.Version, options.Architecture))
	bundle := list.add("bundle", v2_3.Package{
		PackageName:           list.DocumentName,
		PackageVersion:        options.Version,
		PrimaryPackagePurpose: "INSTALL",
	})
	list.relate("DOCUMENT", common.TypeRelationshipDescribe, bundle)
	for _, image := range images {
		list.relate(bundle, common.TypeRelationshipContains, list.image(options, image, roots))
	}
	for name := range options.tools() {
		list.containers[name] = []common.ElementID{bundle}
	}
	list.contents(options, binaries)
	for _, patch := range list.Files {
		list.relate(bundle, common.TypeRelationshipContains, patch.FileSPDXIdentifier)
	}
	return list
}

// DescribeImage returns the contents of a program's image as SPDX 2.3 JSON, for a file in the image. binary and logRunner
// are the files of its programs.
func DescribeImage(options Options, program, binary, logRunner string) ([]byte, error) {
	contents := map[string][]byte{}
	for name, path := range map[string]string{program: binary, "kube-log-runner": logRunner} {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, nextstep.With(err, "make binary")
		}
		contents[name] = content
	}
	binaries, err := inspectAll(options, contents)
	if err != nil {
		return nil, err
	}
	roots, err := listed([]*debug.Module{&options.Roots}, options.ModuleCache)
	if err != nil {
		return nil, err
	}
	list := newInventory(options, program+"-"+image.Tag(options.Version)+"-linux-"+options.Architecture)
	list.relate("DOCUMENT", common.TypeRelationshipDescribe,
		list.image(options, unpacked{program: program, binaries: contents}, roots[0]))
	list.contents(options, binaries)
	return list.encode()
}

// image adds an image. Inside the image, its archive and its id are not known.
func (l inventory) image(options Options, image unpacked, roots Module) common.ElementID {
	part := v2_3.Package{
		PackageName:           image.program + " image",
		PackageVersion:        options.Version,
		PackageComment:        "Its time zones are lib/time/zoneinfo.zip of the Go that compiled it.",
		PrimaryPackagePurpose: "CONTAINER",
	}
	if image.archive != nil {
		part.PackageFileName, part.PackageChecksums = "./"+image.program+".tar", sha256Of(image.archive)
		part.PackageComment = "Image id " + image.id + ". " + part.PackageComment
	}
	contained := l.add("image-"+image.program, part)
	l.relate(l.module(roots), common.TypeRelationshipDataFileOf, contained)
	for name := range image.binaries {
		l.containers[name] = append(l.containers[name], contained)
	}
	return contained
}

// contents adds the binaries, and what they are compiled from.
func (l inventory) contents(options Options, binaries map[string]Binary) {
	source := l.source(options)
	l.patches(options, source)
	for _, name := range slices.Sorted(maps.Keys(binaries)) {
		binary := l.binary(options, name, binaries[name])
		for _, container := range l.containers[name] {
			l.relate(container, common.TypeRelationshipContains, binary)
		}
		if commands[name] != "" {
			l.relate(binary, common.TypeRelationshipGeneratedFrom, source)
		}
	}
}

// encode sets the document's namespace to a hash of its content, and returns it as JSON.
func (l inventory) encode() ([]byte, error) {
	if err := spdxlib.ValidateDocument(l.Document); err != nil {
		return nil, fmt.Errorf("the SBOM is not valid: %w", err)
	}
	var content bytes.Buffer
	if err := spdxjson.Write(l.Document, &content); err != nil {
		return nil, fmt.Errorf("the SBOM: %w", err)
	}
	l.DocumentNamespace = fmt.Sprintf("https://spdx.org/spdxdocs/%s-%x", l.DocumentName, sha256.Sum256(content.Bytes()))
	content.Reset()
	if err := spdxjson.Write(l.Document, &content, spdxjson.Indent("  "), spdxjson.EscapeHTML(false)); err != nil {
		return nil, fmt.Errorf("the SBOM: %w", err)
	}
	return content.Bytes(), nil
}

// notInID matches characters that an SPDX identifier cannot contain.
var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// add appends a package, once, and sets missing required fields to unknown.
func (l inventory) add(id string, part v2_3.Package) common.ElementID {
	element := common.ElementID(notInID.ReplaceAllString(id, "-"))
	for known := l.known[element]; known != nil; known = l.known[element] {
		if known.PackageName == part.PackageName && known.PackageVersion == part.PackageVersion {
			return element
		}
		// Two names may differ only in characters that are replaced.
		element += "-other"
	}
	l.known[element] = &part
	part.PackageSPDXIdentifier = element
	for _, field := range []*string{
		&part.PackageDownloadLocation, &part.PackageLicenseDeclared, &part.PackageLicenseConcluded, &part.PackageCopyrightText,
	} {
		if *field == "" {
			*field = unknown
		}
	}
	l.Packages = append(l.Packages, &part)
	return element
}

// relate adds a relationship, once.
func (l inventory) relate(from common.ElementID, how string, to common.ElementID) {
	relationship := v2_3.Relationship{
		RefA: common.DocElementID{ElementRefID: from}, Relationship: how, RefB: common.DocElementID{ElementRefID: to},
	}
	if !slices.ContainsFunc(l.Relationships, func(known *v2_3.Relationship) bool { return *known == relationship }) {
		l.Relationships = append(l.Relationships, &relationship)
	}
}

// source adds upstream's source, before the patches.
func (l inventory) source(options Options) common.ElementID {
	from, at := "Go module sum "+options.Sum, options.Kubernetes
	if options.Commit != "" {
		from, at = "commit "+options.Commit+", "+from, options.Commit
	}
	return l.add("kubernetes-source", v2_3.Package{
		PackageName:             kubernetes,
		PackageVersion:          options.Kubernetes,
		PackageDownloadLocation: "git+https://github.com/kubernetes/kubernetes.git@" + at,
		PackageHomePage:         "https://kubernetes.io",
		PackageSourceInfo:       from,
		PackageLicenseDeclared:  kubernetesLicence,
		PrimaryPackagePurpose:   "SOURCE",
		PackageExternalReferences: append(purl("golang", kubernetes, options.Kubernetes),
			cpe("kubernetes", "kubernetes", strings.TrimPrefix(options.Kubernetes, "v"))),
	})
}

// patches adds each file of the series, in order.
func (l inventory) patches(options Options, source common.ElementID) {
	for _, patch := range options.Series {
		id := common.ElementID("patch-" + notInID.ReplaceAllString(patch.Name, "-"))
		l.Files = append(l.Files, &v2_3.File{
			FileName:           "./patches/" + patch.Name,
			FileSPDXIdentifier: id,
			FileTypes:          []string{"SOURCE", "TEXT"},
			// SPDX 2.3 requires the SHA-1 of each file.
			Checksums: append(sha256Of(patch.Mail),
				common.Checksum{Algorithm: common.SHA1, Value: fmt.Sprintf("%x", sha1.Sum(patch.Mail))}),
			LicenseConcluded:  unknown,
			FileCopyrightText: unknown,
			FileComment:       fmt.Sprintf("%s (Upstream-Status: %s)", patch.Subject, patch.Trailer("Upstream-Status")),
		})
		l.relate(id, common.TypeRelationshipPatchApplied, source)
	}
}

// binary adds a binary, its modules, and its Go: as the standard library, by the name that scanners know, and as the
// compiler.
func (l inventory) binary(options Options, name string, binary Binary) common.ElementID {
	version := options.Version
	part := v2_3.Package{
		PackageName:               name,
		PackageVersion:            version,
		PackageFileName:           "./" + name,
		PackageChecksums:          []common.Checksum{{Algorithm: common.SHA256, Value: binary.SHA256}},
		PrimaryPackagePurpose:     "APPLICATION",
		PackageExternalReferences: purl("generic", name, version),
	}
	if commands[name] != "" {
		part.PackageLicenseDeclared = kubernetesLicence
	}
	if options.tools()[name] == "" {
		part.PackageFileName = "/usr/local/bin/" + name
	}
	if name == "kube-log-runner" {
		part.PackageFileName = "/go-runner"
	}
	id := l.add("binary-"+name, part)
	number := strings.TrimPrefix(binary.GoVersion, "go")
	home := "https://go.dev/dl/" + binary.GoVersion + ".src.tar.gz"
	compiler := l.add("toolchain-"+binary.GoVersion, v2_3.Package{
		PackageName:               "go",
		PackageVersion:            binary.GoVersion,
		PackageDownloadLocation:   home,
		PackageLicenseDeclared:    goLicence,
		PrimaryPackagePurpose:     "APPLICATION",
		PackageExternalReferences: append(purl("generic", "go", number), cpe("golang", "go", number)),
	})
	l.relate(compiler, common.TypeRelationshipBuildToolOf, id)
	library := l.add("stdlib-"+binary.GoVersion, v2_3.Package{
		PackageName:               "stdlib",
		PackageVersion:            binary.GoVersion,
		PackageDownloadLocation:   home,
		PackageLicenseDeclared:    goLicence,
		PrimaryPackagePurpose:     "LIBRARY",
		PackageExternalReferences: append(purl("golang", "stdlib", number), cpe("golang", "go", number)),
	})
	l.relate(id, common.TypeRelationshipStaticLink, library)
	for _, module := range binary.Modules {
		l.relate(id, common.TypeRelationshipStaticLink, l.module(module))
	}
	return id
}

// module adds a Go module. The same version from two origins, such as a staging directory of Kubernetes and the
// published module, is one package.
func (l inventory) module(module Module) common.ElementID {
	origin := module.Origin
	if module.Sum != "" {
		origin += ", sum " + module.Sum
	}
	part := v2_3.Package{
		PackageName:               module.Path,
		PackageVersion:            module.Version,
		PackageDownloadLocation:   downloadLocation(module),
		PackageSourceInfo:         origin,
		PrimaryPackagePurpose:     "LIBRARY",
		PackageExternalReferences: purl("golang", module.Path, module.Version),
	}
	part.PackageLicenseDeclared = licenceOf(module.Folder)
	id := l.add("module-"+module.Path+"-"+module.Version, part)
	if known := l.known[id]; !slices.Contains(strings.Split(known.PackageSourceInfo, "; "), origin) {
		known.PackageSourceInfo += "; " + origin
	}
	return id
}

// downloadLocation returns the URL of the module's zip file on the public proxy.
func downloadLocation(module Module) string {
	escaped, err := gomodule.EscapePath(module.Path)
	version, versionErr := gomodule.EscapeVersion(module.Version)
	if err != nil || versionErr != nil || module.Version == "" {
		return unknown
	}
	return "https://proxy.golang.org/" + escaped + "/@v/" + version + ".zip"
}

// purl returns a package URL as an external reference.
func purl(kind, name, version string) []*v2_3.PackageExternalReference {
	return []*v2_3.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: locator(kind, name, version),
	}}
}

// locator returns a package URL. It lower-cases the names of Go modules.
func locator(kind, name, version string) string {
	if kind == packageurl.TypeGolang {
		name = strings.ToLower(name)
	}
	namespace, name := path.Split(name)
	return packageurl.NewPackageURL(kind, namespace, name, version, nil, "").String()
}

// cpe returns a product's CPE, its name in advisories.
func cpe(vendor, product, version string) *v2_3.PackageExternalReference {
	return &v2_3.PackageExternalReference{
		Category: common.CategorySecurity, RefType: common.TypeSecurityCPE23Type,
		Locator: fmt.Sprintf("cpe:2.3:a:%s:%s:%s:*:*:*:*:*:*:*", vendor, product, version),
	}
}

func sha256Of(content []byte) []common.Checksum {
	return []common.Checksum{{Algorithm: common.SHA256, Value: fmt.Sprintf("%x", sha256.Sum256(content))}}
}
