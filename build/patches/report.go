// SPDX-License-Identifier: Apache-2.0

package patches

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// The results of a patch on another release, in the order of the summary.
const (
	applies  = "applies"
	moved    = "applies at other lines"
	merged   = "applies with a 3-way merge"
	conflict = "conflicts"
	upstream = "already upstream"
	unneeded = "no longer needed"
	ofModule = "not checked"
)

var results = []string{applies, moved, merged, conflict, upstream, unneeded, ofModule}

// dropForm is the form of a Drop-Check: a path in the tree, whether it must contain the pattern, and the pattern, an
// extended regular expression.
var dropForm = regexp.MustCompile(`^([^\s:]+) (has|lacks) (.+)$`)

// Report writes a table in Markdown: how each patch of the series applies to a commit. objects are
// the object directories of the git repositories that have the commit and, for 3-way merges, the files that the series
// was made for. A patch that conflicts, or is not needed, is left out, and the next one is tried without it. name is the
// commit's name in the title. Report changes no repository.
func Report(ctx context.Context, series []Patch, objects []string, commit, name string) (string, error) {
	scratch, err := os.MkdirTemp("", "rebase-report-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	b := &base{ctx: ctx, dir: scratch, commit: commit}
	if _, err := b.git(nil, "init", "-q"); err != nil {
		return "", err
	}
	alternates := strings.Join(objects, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(scratch, ".git", "objects", "info", "alternates"), []byte(alternates), 0o644); err != nil {
		return "", err
	}
	if _, err := b.git(nil, "read-tree", commit); err != nil {
		return "", err
	}
	var rows strings.Builder
	count := map[string]int{}
	for _, patch := range series {
		result, where, err := b.try(patch)
		if err != nil {
			return "", fmt.Errorf("%s: %w", patch.Name, err)
		}
		count[result]++
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", patch.Name, result, strings.ReplaceAll(where, "|", `\|`))
	}
	var summary []string
	for _, result := range results {
		if count[result] > 0 {
			summary = append(summary, fmt.Sprintf("%d %s", count[result], result))
		}
	}
	return fmt.Sprintf("# The series on %s\n\n%d patches: %s.\n\n| patch | result | where |\n|---|---|---|\n%s",
		name, len(series), strings.Join(summary, ", "), rows.String()), nil
}

// base is a repository whose index has the commit and the patches that were applied to it.
type base struct {
	ctx         context.Context
	dir, commit string
	// leftOut are the patches that conflict.
	leftOut []Patch
}

// git returns the output and the messages of a git command.
func (b *base) git(input []byte, arguments ...string) (string, error) {
	command := exec.CommandContext(b.ctx, "git", arguments...)
	command.Dir, command.Stdin = b.dir, bytes.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, bytes.TrimSpace(output))
	}
	return string(output), err
}

// succeeds reports whether a git command succeeds.
func (b *base) succeeds(input []byte, arguments ...string) bool {
	_, err := b.git(input, arguments...)
	return err == nil
}

var (
	offsetForm = regexp.MustCompile(`(?m)^Hunk #\d+ succeeded at \d+ \(offset`)
	failedForm = regexp.MustCompile(`(?m)^error: patch failed: (.*):\d+$`)
)

// try applies a patch to the index if it can, and returns the result.
func (b *base) try(patch Patch) (result, where string, err error) {
	if module := patch.Trailer(moduleTrailer); module != "" {
		return ofModule, "changes " + module + ", not Kubernetes", nil
	}
	if holds, found := b.dropped(patch.Trailer(dropTrailer)); holds {
		return unneeded, found, nil
	}
	direct, err := b.git(patch.Diff, "apply", "--cached", "--verbose", "-")
	if err == nil {
		if offsets := len(offsetForm.FindAllString(direct, -1)); offsets > 0 {
			return moved, fmt.Sprintf("hunks with an offset: %d", offsets), nil
		}
		return applies, "", nil
	}
	if b.succeeds(patch.Diff, "apply", "--cached", "--reverse", "--check", "-") {
		return upstream, "", nil
	}
	before, err := b.git(nil, "write-tree")
	if err != nil {
		return "", "", err
	}
	if b.succeeds(patch.Diff, "apply", "--cached", "--3way", "-") {
		after, err := b.git(nil, "write-tree")
		if after == before {
			return upstream, "", err
		}
		var files []string
		for _, found := range failedForm.FindAllStringSubmatch(direct, -1) {
			files = append(files, "`"+found[1]+"`")
		}
		return merged, strings.Join(files, ", "), err
	}
	unmerged, err := b.git(nil, "diff", "--cached", "--name-only", "--diff-filter=U")
	if err != nil {
		return "", "", err
	}
	if _, err := b.git(nil, "read-tree", strings.TrimSpace(before)); err != nil {
		return "", "", err
	}
	where, err = b.conflicts(patch, strings.Fields(unmerged))
	b.leftOut = append(b.leftOut, patch)
	return conflict, where, err
}

// dropped reports whether the condition of a Drop-Check holds, and what is found in the commit.
func (b *base) dropped(check string) (bool, string) {
	parts := dropForm.FindStringSubmatch(check)
	if parts == nil || !b.succeeds(nil, "cat-file", "-e", b.commit+":"+parts[1]) {
		return false, ""
	}
	has := b.succeeds(nil, "grep", "-qE", "-e", parts[3], b.commit, "--", parts[1])
	return has == (parts[2] == "has"), fmt.Sprintf("`%s` %s `%s`", parts[1], parts[2], parts[3])
}

// conflicts describes the files and hunks of a patch that conflict. unmerged are the files that a 3-way merge could not
// merge; empty if there was none, because a file or its version in the series is missing.
func (b *base) conflicts(patch Patch, unmerged []string) (string, error) {
	files, _, err := gitdiff.Parse(bytes.NewReader(patch.Diff))
	if err != nil {
		return "", err
	}
	var all []string
	for _, file := range files {
		name := file.OldName
		if file.IsNew {
			name = file.NewName
		}
		exists := b.succeeds(nil, "ls-files", "--error-unmatch", "--", name)
		switch {
		case file.IsNew && exists:
			all = append(all, "`"+name+"` already exists")
			continue
		case file.IsNew:
			continue
		case !exists:
			all = append(all, "`"+name+"` does not exist")
			continue
		case len(unmerged) > 0 && !slices.Contains(unmerged, name):
			continue
		}
		var lines []string
		for _, fragment := range file.TextFragments {
			one := fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n%[2]s", name, fragment)
			if !b.succeeds([]byte(one), "apply", "--cached", "--check", "-") {
				lines = append(lines, fmt.Sprint(fragment.OldPosition))
			}
		}
		if len(lines) > 0 {
			all = append(all, fmt.Sprintf("`%s`: hunks %d of %d (lines %s)", name, len(lines), len(file.TextFragments), strings.Join(lines, ", ")))
		}
	}
	var others []string
	for _, other := range b.leftOut {
		if slices.ContainsFunc(other.Files, func(name string) bool { return slices.Contains(patch.Files, name) }) {
			number, _, _ := strings.Cut(other.Name, "-")
			others = append(others, number)
		}
	}
	if len(others) > 0 {
		all = append(all, "without "+strings.Join(others, ", "))
	}
	return strings.Join(all, "; "), nil
}
