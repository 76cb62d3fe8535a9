// SPDX-License-Identifier: Apache-2.0

package patches

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// statuses are the values of Upstream-Status and their meanings.
var statuses = []struct{ word, meaning string }{
	{"Inappropriate", "makes sense in this project only"},
	{"End-Of-Life", "right for upstream too, but Kubernetes 1.23 takes no more changes"},
	{"Fixed-Later", "a later release of Kubernetes solved the same problem in its own way"},
}

// requiredTrailers must each appear exactly once at the end of a message.
var requiredTrailers = []string{"Why", "Upstream-Status", "Applies-To", "Drop-When"}

// moduleTrailer names a module; the patch is applied only if the build includes the module.
const moduleTrailer = "Module"

// dropTrailer is a condition that a program can check in upstream's tree: if it holds, the patch is no longer needed.
const dropTrailer = "Drop-Check"

// leftOutTrailer is the first release for which the patch is applied.
const leftOutTrailer = "Left-Out-Before"

// speedTrailers belong to a performance patch: the gain, and the proof that placements stay the same.
var speedTrailers = []string{"Gain", "Oracle"}

var (
	nameForm    = regexp.MustCompile(`^[0-9]{4}-[a-z0-9]+(-[a-z0-9]+)*\.patch$`)
	subjectForm = regexp.MustCompile(`^[a-z0-9-]+: .{3,}[^.]$`)
	// cutForm matches a line at which git am would end the message, or that it would read as a header.
	cutForm     = regexp.MustCompile(`(?m)^(---|diff -|Index: |>?From |\[PATCH|(?i:(from|date|subject): )).*`)
	appliesForm = regexp.MustCompile(`^v1\.23\.[0-9]+ - v1\.23\.[0-9]+$`)
)

// Lint returns the faults of the series, a sentence each.
func Lint(series []Patch) []string {
	var faults []string
	for _, patch := range series {
		for _, fault := range lint(patch) {
			faults = append(faults, patch.Name+": "+fault)
		}
	}
	return faults
}

func lint(patch Patch) []string {
	var faults []string
	report := func(format string, arguments ...any) { faults = append(faults, fmt.Sprintf(format, arguments...)) }

	if !nameForm.MatchString(patch.Name) {
		report("the name is not of the form 0123-what-it-does")
	}
	if !subjectForm.MatchString(patch.Subject) || len(patch.Subject) > 72 {
		report("the subject %q is not of the form \"area: what it does\": in lower case up to the colon, at least 4 characters after it, at most 72 in all, without a full stop", patch.Subject)
	}
	if patch.Body == "" {
		report("the message has no text between the subject and the trailers")
	}
	if line := cutForm.FindString(patch.Body); line != "" {
		report("git am would not take the line %q as part of the message", line)
	}
	required := requiredTrailers
	if patch.Trailer(speedTrailers[0]) != "" || patch.Trailer(speedTrailers[1]) != "" {
		required = slices.Concat(requiredTrailers, speedTrailers)
	}
	for _, optional := range []string{moduleTrailer, dropTrailer, leftOutTrailer} {
		if patch.Trailer(optional) != "" {
			required = append(slices.Clip(required), optional)
		}
	}
	for _, key := range required {
		count := 0
		for _, trailer := range patch.Trailers {
			if trailer.Key == key {
				count++
			}
		}
		if count != 1 {
			report("the trailer %s: occurs %d times, not once", key, count)
		}
	}
	for _, trailer := range patch.Trailers {
		if !slices.Contains(required, trailer.Key) {
			report("the trailer %s: is unknown; known are %s", trailer.Key,
				strings.Join(append(slices.Concat(requiredTrailers, speedTrailers), moduleTrailer, dropTrailer, leftOutTrailer), ", "))
		}
	}
	if status := patch.Trailer("Upstream-Status"); !slices.ContainsFunc(statuses, func(s struct{ word, meaning string }) bool { return s.word == status }) {
		var words []string
		for _, s := range statuses {
			words = append(words, s.word)
		}
		report("Upstream-Status: %q is not one of %s", status, strings.Join(words, ", "))
	}
	if applies := patch.Trailer("Applies-To"); !appliesForm.MatchString(applies) {
		report("Applies-To: %q is not a range like \"v1.23.0 - v1.23.17\"", applies)
	}
	if check := patch.Trailer(dropTrailer); check != "" {
		parts := dropForm.FindStringSubmatch(check)
		if parts == nil {
			report("Drop-Check: %q is not of the form \"PATH has PATTERN\" or \"PATH lacks PATTERN\"", check)
		} else if _, err := regexp.CompilePOSIX(parts[3]); err != nil {
			report("Drop-Check: %v", err)
		}
	}
	if plugin, ok := strings.CutPrefix(strings.TrimSuffix(patch.Name, ".patch"), pluginPrefix); ok {
		for _, file := range patch.Files {
			if !strings.HasPrefix(file, "pkg/scheduler/framework/plugins/"+plugin+"/") {
				report("it changes %s, outside its plugin's directory", file)
			}
		}
		if patch.Deleted > 0 {
			report("it deletes lines: a plugin patch only adds files")
		}
	}
	return faults
}
