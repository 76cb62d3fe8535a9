// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"kube-scheduler-fork/build/image"
	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/patches"
	"kube-scheduler-fork/build/signature"
)

// File names in a bundle.
const (
	swapName     = "kube-scheduler-swap"
	kubectlName  = "kubectl-scheduling"
	simulateName = "kube-scheduler-simulate"
	licenceName  = "LICENSE"
	pinName      = "upstream.version"
	modulesName  = "modules.yaml"
	// The suffixes by which scanners recognize an SBOM.
	spdxSuffix      = ".spdx.json"
	cycloneDXSuffix = ".cdx.json"
	// in-toto's tools recognize a statement by this one.
	provenanceSuffix = ".intoto.json"
	sumsName         = signature.Sums
)

// file is a file of a bundle.
type file struct {
	name    string // below the bundle's only directory, with slashes
	mode    fs.FileMode
	content []byte
}

// gather reads the files that a bundle copies unchanged, except for a note on pages.
func gather(options Options) ([]file, error) {
	var files []file
	take := func(name, source string, mode fs.FileMode, next string) error {
		content, err := os.ReadFile(source)
		if err != nil {
			return nextstep.With(err, "%s", next)
		}
		if strings.HasSuffix(name, ".md") {
			content = bundled(content)
		}
		files = append(files, file{name, mode, content})
		return nil
	}
	for program, source := range options.archives() {
		if err := take(program+".tar", source, 0o644, "make release ARCH="+options.Architecture); err != nil {
			return nil, err
		}
	}
	for name, source := range options.tools() {
		if err := take(name, source, 0o755, "make release ARCH="+options.Architecture); err != nil {
			return nil, err
		}
	}
	// All pages, because they link to each other, and their figures.
	var pages []string
	for _, suffix := range []string{"md", "svg", "png"} {
		found, err := filepath.Glob(filepath.Join(options.Project, "docs", "*."+suffix))
		if err != nil {
			return nil, err
		}
		pages = append(pages, found...)
	}
	for _, name := range []string{"README.md", "README.zh-CN.md"} {
		if err := take(name, filepath.Join(options.Project, name), 0o644, "git checkout -- "+name); err != nil {
			return nil, err
		}
	}
	for _, page := range pages {
		if name := filepath.Base(page); !patches.LeftBehind(name) {
			if err := take("docs/"+name, page, 0o644, "git checkout -- docs"); err != nil {
				return nil, err
			}
		}
	}
	if err := take(licenceName, filepath.Join(options.Project, licenceName), 0o644, "git checkout -- "+licenceName); err != nil {
		return nil, err
	}
	pin, err := pinOf(options)
	if err != nil {
		return nil, err
	}
	files = append(files, file{pinName, 0o644, pin})
	if err := take(modulesName, options.Modules, 0o644, "git checkout -- "+modulesName); err != nil {
		return nil, err
	}
	if err := take("openvex.json", filepath.Join(options.Project, "build/vulncheck/openvex.json"), 0o644, "make vulncheck WRITE=yes"); err != nil {
		return nil, err
	}
	if options.ModulesPatch != "" {
		if err := take("patches/"+patches.ModulesPatch, options.ModulesPatch, 0o644, "make tree"); err != nil {
			return nil, err
		}
	}

	for _, patch := range options.Series {
		files = append(files, file{"patches/" + patch.Name, 0o644, patch.Mail})
	}
	if err := take("patches/README.md", filepath.Join(options.Project, "patches/README.md"), 0o644, "git checkout -- patches"); err != nil {
		return nil, err
	}
	page := &files[len(files)-1]
	page.content = stepLink.ReplaceAll(page.content, []byte("]($1.patch)"))
	page.content = pluginLink.ReplaceAll(page.content, []byte("](0200-plugin-$1.patch)"))
	definitions, err := filepath.Glob(filepath.Join(options.CRDs, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, source := range definitions {
		if err := take("crds/"+filepath.Base(source), source, 0o644, "make release"); err != nil {
			return nil, err
		}
	}
	manifests := filepath.Join(options.Project, "manifests")
	err = filepath.WalkDir(manifests, func(source string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nextstep.With(err, "git checkout -- manifests")
		case source != manifests && patches.LeftBehind(entry.Name()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return nextstep.With(fmt.Errorf("%s is not a regular file, which not every system can unpack", source),
				"replace it with a regular file")
		}
		below, err := filepath.Rel(options.Project, source)
		if err != nil {
			return err
		}
		// All CRDs are in one directory, which the scheduler's error messages name.
		name := strings.Replace(filepath.ToSlash(below), "manifests/crds/", "crds/", 1)
		return take(name, source, 0o644, "git checkout -- manifests")
	})
	return files, err
}

// stepLink and pluginLink match a link of patches/README.md to the directory of a step. A bundle has the step as a patch.
var (
	stepLink   = regexp.MustCompile(`\]\((\d{4}-[^/)]*)/\)`)
	pluginLink = regexp.MustCompile(`\]\(\.\./plugins/([^/)]+)\)`)
)

// ofCheckout matches a command on a page that needs a checkout of the project.
var ofCheckout = regexp.MustCompile("(?m)(^ {4}|`)(make|bash|git|GOWORK=off go) ")

const checkoutNote = "\n> In this bundle: commands that begin with `make`, `bash`, `git` or `go`, here and in the comments of manifests,\n" +
	"> need a checkout of the project's source, as do the directories `build/`, `plugins/`, `scripts/` and `test/`.\n" +
	"> A bundle contains `kube-scheduler-swap`, `kubectl-scheduling`, `kube-scheduler-simulate`, the image and the manifests.\n"

// bundled returns a page with a note below the title about commands that need a checkout.
func bundled(page []byte) []byte {
	end := bytes.IndexByte(page, '\n') + 1
	if end == 0 || !ofCheckout.Match(page) {
		return page
	}
	return slices.Concat(page[:end], []byte(checkoutNote), page[end:])
}

// pinOf returns the upstream.version of a bundle: the project's own, or one in the same form for another release.
func pinOf(options Options) ([]byte, error) {
	if options.Pin.Version == options.Kubernetes {
		return os.ReadFile(options.UpstreamVersion)
	}
	lines := "# The release and Go that this bundle was built from. The project pins another release.\nKUBERNETES_VERSION=" + options.Kubernetes + "\n"
	if options.Commit != "" {
		lines += "KUBERNETES_COMMIT=" + options.Commit + "\n"
	}
	return []byte(lines + "KUBERNETES_SUM=" + options.Sum + "\nGO_VERSION=" + options.Pin.GoVersion + "\n"), nil
}

// programs returns the names of the binaries in a program's image, by their paths.
func programs(program string) map[string]string {
	return map[string]string{"usr/local/bin/" + program: program, "go-runner": "kube-log-runner"}
}

// commands are the packages in the tree that the binaries are compiled from, by the binaries' names.
var commands = map[string]string{
	"kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler", simulateName: "k8s.io/kubernetes/cmd/kube-scheduler-simulate",
	"kube-log-runner": "k8s.io/component-base/logs/kube-log-runner",
}

// unpacked holds the facts of an image.
type unpacked struct {
	// program is the name of its program, and archive the content of the archive.
	program string
	archive []byte
	// id is the image's id in container runtimes: the digest of its configuration.
	id string
	// binaries are the contents of the binaries by their names.
	binaries map[string][]byte
}

// unpack reads the binaries from a program's image archive, so that the facts describe the binaries that will run. It
// returns an error for an archive of another version or architecture.
func unpack(options Options, program string) (unpacked, error) {
	archive := options.archives()[program]
	contents, err := readArchive(options, program, archive)
	if err == nil {
		return contents, nil
	}
	target := "image"
	if program == image.Extender {
		target = "extender-image"
	}
	return unpacked{}, nextstep.With(fmt.Errorf("%s: %w", archive, err), "make %s ARCH=%s", target, options.Architecture)
}

func readArchive(options Options, program, archive string) (unpacked, error) {
	contents := unpacked{program: program, binaries: map[string][]byte{}}
	names, err := image.Names(program, options.Version, options.Architecture, "")
	if err != nil {
		return contents, err
	}
	// Lookup by name: an archive of another version does not contain it.
	found, err := tarball.ImageFromPath(archive, &names[0])
	if err != nil {
		return contents, fmt.Errorf("it does not contain %s: %w", names[0], err)
	}
	config, err := found.ConfigFile()
	if err != nil {
		return contents, err
	}
	if config.Architecture != options.Architecture {
		return contents, fmt.Errorf("it is for %s, not for %s", config.Architecture, options.Architecture)
	}
	id, err := found.ConfigName()
	if err != nil {
		return contents, err
	}
	contents.id = id.String()
	layers := mutate.Extract(found)
	defer layers.Close()
	reader := tar.NewReader(layers)
	for {
		header, err := reader.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			return contents, err
		}
		if name, wanted := programs(program)[path.Clean(header.Name)]; wanted {
			if contents.binaries[name], err = io.ReadAll(reader); err != nil {
				return contents, err
			}
		}
	}
	for place, name := range programs(program) {
		if len(contents.binaries[name]) == 0 {
			return contents, fmt.Errorf("it does not contain /%s", place)
		}
	}
	return contents, nil
}
