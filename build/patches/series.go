// SPDX-License-Identifier: Apache-2.0

// Package patches reads the patch series: the changes of each patch, why it exists, and the version of a build with the
// series.
package patches

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"golang.org/x/mod/semver"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/source"
)

// ModulesPatch is the name of the patch that adds what modules.yaml names. It comes before the series, and is not part
// of it.
const ModulesPatch = "0000-modules.patch"

// Patch is one patch of the series.
type Patch struct {
	// Name is the name of its file, without the directory.
	Name string
	// Mail is the patch as git am takes it.
	Mail []byte
	// Subject is the commit's first line, without "[PATCH]".
	Subject string
	// Body is the message between the subject and the trailers.
	Body string
	// Trailers are the "Key: value" lines that end the message, in order.
	Trailers []Trailer
	// Diff is the change itself, from the first "diff --git" line, without the git version at the end.
	Diff []byte
	// Files are the changed files' paths in the tree.
	Files []string
	// Added and Deleted count changed lines.
	Added, Deleted int
}

// Trailer is one "Key: value" line at the end of a commit message.
type Trailer struct{ Key, Value string }

// Trailer returns the value of the trailer with that key, or "".
func (p Patch) Trailer(key string) string {
	for _, trailer := range p.Trailers {
		if trailer.Key == key {
			return trailer.Value
		}
	}
	return ""
}

// Read reads all *.patch files of a directory in the order in which they apply: the byte order of their names.
func Read(dir string) ([]Patch, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == ModulesPatch })
	if len(files) == 0 {
		return nil, nextstep.With(fmt.Errorf("there are no patches in %s", dir), "make patches")
	}
	sort.Strings(files)
	var series []Patch
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		patch, err := parse(filepath.Base(file), content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		series = append(series, patch)
	}
	return series, nil
}

func parse(name string, content []byte) (Patch, error) {
	message, diff, err := splitMail(content)
	if err != nil {
		return Patch{}, err
	}
	return newPatch(name, content, message, diff)
}

func newPatch(name string, content []byte, message string, diff []byte) (Patch, error) {
	files, _, err := gitdiff.Parse(bytes.NewReader(diff))
	if err != nil {
		return Patch{}, err
	}
	patch := Patch{Name: name, Mail: content, Diff: diff}
	subject, body, _ := strings.Cut(message, "\n")
	patch.Subject = subject
	patch.Body, patch.Trailers = splitTrailers(body)
	for _, file := range files {
		path := file.NewName
		if file.IsDelete {
			path = file.OldName
		}
		patch.Files = append(patch.Files, path)
		for _, fragment := range file.TextFragments {
			patch.Added += int(fragment.LinesAdded)
			patch.Deleted += int(fragment.LinesDeleted)
		}
	}
	return patch, nil
}

// splitTrailers removes the last paragraph from a message if each of its lines is "Key: value" or starts with a blank
// to continue one.
func splitTrailers(message string) (body string, trailers []Trailer) {
	message = strings.TrimSpace(message)
	paragraph := message[strings.LastIndex(message, "\n\n")+1:]
	for line := range strings.Lines(strings.TrimSpace(paragraph)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, " ") && len(trailers) > 0 {
			trailers[len(trailers)-1].Value += " " + strings.TrimSpace(line)
			continue
		}
		key, value, found := strings.Cut(line, ": ")
		if !found || strings.ContainsAny(key, " \t") {
			return message, nil
		}
		trailers = append(trailers, Trailer{key, value})
	}
	return strings.TrimSpace(strings.TrimSuffix(message, paragraph)), trailers
}

// Carried returns the patches that apply to a build with modules: it leaves out those that have a trailer Module and
// change a package that neither the modules nor their dependencies contain.
func Carried(series []Patch, modules []source.Module) []Patch {
	carried := map[string]bool{}
	for _, m := range source.All(modules) {
		for _, imported := range m.ImportPaths() {
			carried["vendor/"+imported] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(series), func(patch Patch) bool {
		return patch.Trailer(moduleTrailer) != "" &&
			slices.ContainsFunc(patch.Files, func(file string) bool { return !carried[path.Dir(file)] })
	})
}

// For returns the patches that apply to a release, such as v1.23.1: it leaves out those that need a later one.
func For(release string, series []Patch) []Patch {
	return slices.DeleteFunc(slices.Clone(series), func(patch Patch) bool {
		first := patch.Trailer(leftOutTrailer)
		return first != "" && semver.Compare(release, first) < 0
	})
}

// Version names a build by its content: v1.23.17+fork.0123456789ab. The hex digits are the first 12 of the SHA-256 of
// these lines: upstream's module sum, each added module with its sum, packages and plugins, the code that registers the
// plugins, the SHA-256 of each diff in order, and the Go version. Patch messages do not count. The suffix consists of
// letters and digits.
func Version(kubernetes, suffix, sum, goVersion string, modules []source.Module, series []Patch) (string, error) {
	if suffix == "" || strings.ContainsFunc(suffix, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) {
		return "", nextstep.With(fmt.Errorf("version suffix %q: only letters and digits", suffix),
			"make image VERSION_SUFFIX=fork")
	}
	hash := sha256.New()
	fmt.Fprintln(hash, sum)
	for _, module := range source.All(modules) {
		fmt.Fprintln(hash, module)
	}
	hash.Write(source.Registration(modules))
	for _, patch := range Carried(series, modules) {
		fmt.Fprintf(hash, "%x\n", sha256.Sum256(patch.Diff))
	}
	fmt.Fprintln(hash, goVersion)
	return fmt.Sprintf("%s+%s.%.12x", kubernetes, suffix, hash.Sum(nil)[:6]), nil
}
