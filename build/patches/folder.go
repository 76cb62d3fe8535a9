// SPDX-License-Identifier: Apache-2.0

package patches

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kube-scheduler-fork/build/nextstep"
)

// The two files in the folder of a step that are not files of the tree.
const (
	messageName = "message"
	changeName  = "change.patch"
)

// ReadFolders reads the series from the folders of its steps, and from the plugins' directories, which are steps that
// only add files. The order is the byte order of the patches' names.
func ReadFolders(steps, plugins string) ([]Patch, error) {
	entries, err := os.ReadDir(steps)
	if err != nil {
		return nil, nextstep.With(err, "git checkout -- patches")
	}
	var series []Patch
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case interrupted(steps, name):
			return nil, nextstep.With(fmt.Errorf("%s was left by an interrupted make export-patch", filepath.Join(steps, name)),
				"mv %s %s", filepath.Join(steps, name), filepath.Join(steps, stepOf(name)))
		case LeftBehind(name) || name == "README.md":
			continue
		case name+".patch" == ModulesPatch:
			return nil, nextstep.With(fmt.Errorf("%s has the name of the patch with the packages of modules.yaml", filepath.Join(steps, name)),
				"give it another number")
		case !entry.IsDir():
			return nil, nextstep.With(fmt.Errorf("%s is not the folder of a step", filepath.Join(steps, name)),
				"move it away; docs/patches.md, 'Add', says how a patch becomes a folder")
		}
		patch, err := readFolder(filepath.Join(steps, name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(steps, name), err)
		}
		// git keeps no empty folder, but leaves one behind when another branch is checked out.
		if patch.Diff != nil {
			series = append(series, patch)
		}
	}
	if len(series) == 0 {
		return nil, nextstep.With(fmt.Errorf("there are no steps in %s", steps), "git checkout -- patches")
	}
	added, err := readPlugins(plugins)
	if err != nil {
		return nil, err
	}
	series = append(series, added...)
	slices.SortFunc(series, func(a, b Patch) int { return strings.Compare(a.Name, b.Name) })
	return series, nil
}

// readFolder reads the folder of a step. The patch of a folder without files has no diff.
func readFolder(dir string) (Patch, error) {
	added, err := addedFiles(dir, "")
	if err != nil {
		return Patch{}, err
	}
	change, message := added[changeName], added[messageName]
	if len(added) == 0 {
		return Patch{}, nil
	}
	if message == nil {
		return Patch{}, nextstep.With(errors.New("there is no file message"), "git checkout -- %s", dir)
	}
	delete(added, changeName)
	delete(added, messageName)
	if len(added)+len(change) == 0 {
		return Patch{}, nextstep.With(fmt.Errorf("there is neither a new file nor a %s", changeName), "git checkout -- %s", dir)
	}
	changes, err := splitDiff(change)
	if err != nil {
		return Patch{}, nextstep.With(fmt.Errorf("%s: %w", changeName, err), "write it with make export-patch, or git checkout -- %s", dir)
	}
	sections := map[string][]byte{}
	for _, section := range changes {
		if section.isPlainFile() {
			return Patch{}, nextstep.With(fmt.Errorf("%s adds %s, which nobody would see there", changeName, section.path),
				"move it to %s", filepath.Join(dir, section.path))
		}
		sections[section.path] = section.text
	}
	for path, content := range added {
		if sections[path] != nil {
			return Patch{}, nextstep.With(fmt.Errorf("%s changes %s, which is a new file of the same step", changeName, path),
				"make the change in %s", filepath.Join(dir, path))
		}
		sections[path] = newFile(path, content)
	}
	return compose(filepath.Base(dir), string(message), sections)
}

// compose makes a patch from its message and the sections of its diff by path.
func compose(step, message string, sections map[string][]byte) (Patch, error) {
	var paths []string
	for path := range sections {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	var diff bytes.Buffer
	for _, path := range paths {
		if bytes.Contains(sections[path], []byte("\r\n")) {
			return Patch{}, nextstep.With(fmt.Errorf("%s has lines that end with CR LF, and git am drops the CR", path), "use LF only")
		}
		diff.Write(sections[path])
	}
	message = strings.TrimSpace(message)
	if subject, body, more := strings.Cut(message, "\n"); more && !strings.HasPrefix(body, "\n") {
		return Patch{}, nextstep.With(fmt.Errorf("%s: there is no blank line after %q", messageName, subject), "add it: git am reads the lines before it as headers")
	}
	return newPatch(step+".patch", mail(message, diff.Bytes()), message, diff.Bytes())
}

var indexLine = regexp.MustCompile(`(?m)^index .*\n`)

// supportedPath matches what splitDiff accepts.
var supportedPath = regexp.MustCompile(`^[!#-\[\]-~]+$`)

// addedFiles reads the files below a directory, by their paths with slashes after prefix. It returns an error for what a
// section of a diff for a new file cannot express.
func addedFiles(dir, prefix string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case file != dir && LeftBehind(entry.Name()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return nextstep.With(fmt.Errorf("%s is not a regular file", file),
				"replace it with one; a link belongs into a %s", changeName)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if bytes.IndexByte(content, 0) >= 0 {
			return nextstep.With(fmt.Errorf("%s is not a text file", file), "put it into a %s: git diff --binary", changeName)
		}
		below, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		path := prefix + filepath.ToSlash(below)
		if !supportedPath.MatchString(path) {
			return nextstep.With(fmt.Errorf("the path %q has a blank, a quote or a letter outside ASCII, which a patch cannot name plainly", path),
				"give the file another name")
		}
		files[path] = content
		return nil
	})
	return files, err
}

// LeftBehind reports whether a file is hidden, or a temporary file of an editor or a merge.
func LeftBehind(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, ".orig") || strings.HasSuffix(name, ".rej")
}

// Make writes the series as *.patch files, as git am takes them, and removes all other patches of the directory except
// the modules' patch. It returns the names of the files that changed.
func Make(dir string, series []Patch) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var changed []string
	made := map[string]bool{ModulesPatch: true}
	for _, patch := range series {
		made[patch.Name] = true
		file := filepath.Join(dir, patch.Name)
		if content, err := os.ReadFile(file); err == nil && bytes.Equal(content, patch.Mail) {
			continue
		}
		changed = append(changed, patch.Name)
		if err := os.WriteFile(file+".new", patch.Mail, 0o644); err != nil {
			return nil, err
		}
		if err := os.Rename(file+".new", file); err != nil {
			return nil, err
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if name := filepath.Base(file); !made[name] {
			changed = append(changed, name)
			if err := os.Remove(file); err != nil {
				return nil, err
			}
		}
	}
	return changed, nil
}

// Export writes a patch in the form of git format-patch as the folder of the step, in the directory steps. A folder of
// that name is replaced.
func Export(steps, step string, content []byte) error {
	patch, err := parse(step+".patch", content)
	if err != nil {
		return err
	}
	message, _, err := splitMail(content)
	if err != nil {
		return err
	}
	sections, err := splitDiff(patch.Diff)
	if err != nil {
		return fmt.Errorf("the commit cannot be a step: its diff: %w", err)
	}
	files := map[string][]byte{messageName: []byte(message)}
	for _, section := range sections {
		if section.isPlainFile() {
			files[section.path] = section.content()
		} else {
			files[changeName] = append(files[changeName], section.text...)
		}
	}
	target := filepath.Join(steps, step)
	made, old := filepath.Join(steps, "."+step+".new"), filepath.Join(steps, "."+step+oldSuffix)
	if err := os.RemoveAll(made); err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(made, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	written, err := readFolder(made)
	// A diff that a person wrote has no index lines.
	if err == nil && !bytes.Equal(indexLine.ReplaceAll(written.Diff, nil), indexLine.ReplaceAll(patch.Diff, nil)) {
		err = errors.New("the folder would not give the commit's diff")
	}
	if err == nil {
		err = carryLeftBehind(target, made)
	}
	if err == nil && !interrupted(steps, filepath.Base(old)) {
		// Left by a run that was interrupted at its very end.
		err = os.RemoveAll(old)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s cannot be written: %w", target, err), os.RemoveAll(made))
	}
	if err := os.Rename(target, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(made, target); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// carryLeftBehind copies hidden and temporary files, which are a user's, from one folder to another.
func carryLeftBehind(from, to string) error {
	return filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || file == from {
			return nil
		} else if err != nil || !LeftBehind(entry.Name()) {
			return err
		}
		below, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if entry.IsDir() {
			if err := os.CopyFS(target, os.DirFS(file)); err != nil {
				return err
			}
			return fs.SkipDir
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o644)
	})
}

// oldSuffix ends the name of the folder that Export replaces, while there is none of the right name.
const oldSuffix = ".old"

// stepOf returns the name of the step whose folder Export had moved away under a name.
func stepOf(name string) string { return strings.TrimSuffix(strings.TrimPrefix(name, "."), oldSuffix) }

// interrupted reports whether an entry is a folder that Export had moved away when it was interrupted.
func interrupted(steps, name string) bool {
	if !strings.HasPrefix(name, ".") || !strings.HasSuffix(name, oldSuffix) {
		return false
	}
	_, err := os.Lstat(filepath.Join(steps, stepOf(name)))
	return errors.Is(err, fs.ErrNotExist)
}
