// SPDX-License-Identifier: Apache-2.0

package patches

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git names objects by it.
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"kube-scheduler-fork/build/nextstep"
)

// mailHeader begins each patch. Author and date are fixed, so that two people make the same commits.
const mailHeader = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n" +
	"From: kube-scheduler build <build@localhost>\nDate: Sun, 9 Sep 2001 01:46:40 +0000\nSubject: [PATCH] "

// mail returns a patch as git am takes it.
func mail(message string, diff []byte) []byte {
	return append([]byte(mailHeader+strings.TrimSpace(message)+"\n\n"), diff...)
}

// splitMail splits a patch in the form of git format-patch into the commit's message and its diff, without the version
// of git at its end.
func splitMail(content []byte) (message string, diff []byte, err error) {
	start := bytes.Index(content, []byte("\ndiff --git "))
	if start < 0 {
		return "", nil, nextstep.With(errors.New("no line starts with \"diff --git\""), "create it with git format-patch")
	}
	diff = signature.ReplaceAll(content[start+1:], []byte("\n"))
	head, body, _ := strings.Cut(string(content[:start])+"\n", "\n\n")
	// After this line, git format-patch counts the changed lines.
	body, _, _ = strings.Cut(body, "\n---\n")
	header, err := gitdiff.ParsePatchHeader(head + "\n")
	if err != nil {
		return "", nil, err
	}
	return strings.TrimSpace(header.Title+"\n\n"+strings.TrimSpace(body)) + "\n", diff, nil
}

// signature is the version of git at the end of a patch.
var signature = regexp.MustCompile(`\n-- \n[0-9][^\n]*\n*$`)

// section is the part of a diff about one file.
type section struct {
	path string
	text []byte
}

var (
	// Git quotes other paths, and a path with a blank would be ambiguous.
	sectionStart = regexp.MustCompile(`^diff --git a/([!-~]+) b/([!-~]+)\n$`)
	plainFile    = regexp.MustCompile(`^diff --git .*\nnew file mode 100644\n`)
)

// splitDiff splits a diff into its sections. Lines of content begin with a blank, + or -, so each line that begins with
// "diff --git" starts one. It returns an error unless the sections are the whole diff, each about another file.
func splitDiff(diff []byte) ([]section, error) {
	var sections []section
	seen := map[string]bool{}
	for line := range bytes.Lines(diff) {
		if !bytes.HasPrefix(line, []byte("diff --git ")) {
			if len(sections) == 0 {
				return nil, fmt.Errorf("it begins with %q, not with \"diff --git\"", line)
			}
			last := &sections[len(sections)-1]
			last.text = append(last.text, line...)
			continue
		}
		found := sectionStart.FindSubmatch(line)
		if found == nil || bytes.ContainsAny(line, "\"\\") {
			return nil, fmt.Errorf("the path of %q is not supported: only letters, digits and marks of ASCII, without quotes and blanks", line)
		}
		path := string(found[2])
		if seen[path] {
			return nil, fmt.Errorf("it changes %s in two sections", path)
		}
		seen[path] = true
		sections = append(sections, section{path, bytes.Clone(line)})
	}
	if len(diff) > 0 && !bytes.HasSuffix(diff, []byte("\n")) {
		return nil, errors.New("its last line does not end: it is cut off")
	}
	return sections, nil
}

// isPlainFile reports whether the section adds a text file that is not executable, and that a folder is searched for: one
// that belongs into the folder as a file.
func (s section) isPlainFile() bool {
	return plainFile.Match(s.text) && !bytes.Contains(s.text, []byte("\nGIT binary patch\n")) &&
		s.path != messageName && s.path != changeName && !slices.ContainsFunc(strings.Split(s.path, "/"), LeftBehind)
}

// lines counts the lines that the section adds and deletes.
func (s section) lines() (added, deleted int) {
	_, hunks, _ := bytes.Cut(s.text, []byte("\n@@ -"))
	// What is left of the first header begins with a number.
	for line := range bytes.Lines(hunks) {
		switch line[0] {
		case '+':
			added++
		case '-':
			deleted++
		}
	}
	return added, deleted
}

// content returns the content of the file that the section adds.
func (s section) content() []byte {
	_, hunk, _ := bytes.Cut(s.text, []byte("\n@@ "))
	_, hunk, _ = bytes.Cut(hunk, []byte("\n"))
	var content []byte
	for line := range bytes.Lines(hunk) {
		if line[0] == '+' {
			content = append(content, line[1:]...)
		} else {
			content = bytes.TrimSuffix(content, []byte("\n")) // "\ No newline at end of file"
		}
	}
	return content
}

// newFile returns the section of a diff that adds a file, as git writes it.
func newFile(path string, content []byte) []byte {
	blob := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(content)), content...))
	text := fmt.Appendf(nil, "diff --git a/%[1]s b/%[1]s\nnew file mode 100644\nindex %040d..%x\n", path, 0, blob)
	if len(content) == 0 {
		return text
	}
	lines := bytes.SplitAfter(content, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	count := ""
	if len(lines) > 1 {
		count = fmt.Sprintf(",%d", len(lines))
	}
	text = fmt.Appendf(text, "--- /dev/null\n+++ b/%s\n@@ -0,0 +1%s @@\n", path, count)
	for _, line := range lines {
		text = append(append(text, '+'), line...)
	}
	if !bytes.HasSuffix(content, []byte("\n")) {
		text = append(text, "\n\\ No newline at end of file\n"...)
	}
	return text
}
