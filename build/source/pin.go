// SPDX-License-Identifier: Apache-2.0

// The Kubernetes release to build, pinned in the file upstream.version, and the versions that follow from it.
package source

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"

	"kube-scheduler-fork/build/nextstep"
)

// Pin is the content of upstream.version.
type Pin struct {
	// Version is the Kubernetes tag, "v1.23.17".
	Version string
	// Commit is the 40 hex digits of the commit that the tag must point to.
	Commit string
	// Sum is the "h1:" sum of the Go module k8s.io/kubernetes at Version.
	Sum string
	// GoVersion is the toolchain name, "go1.27.4".
	GoVersion string
}

var (
	commitForm  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	sumForm     = regexp.MustCompile(`^h1:[A-Za-z0-9+/]{43}=$`)
	versionForm = regexp.MustCompile(`^v1\.23\.(0|[1-9][0-9]*)$`)
	goForm      = regexp.MustCompile(`^go1\.[0-9]+(\.[0-9]+|rc[0-9]+)?$`)
)

// CheckVersion returns an error unless version is a release of the minor version that this project patches.
func CheckVersion(version string) error {
	if !versionForm.MatchString(version) {
		return nextstep.With(
			fmt.Errorf("%q is not a release of Kubernetes 1.23: the patches are made for v1.23.0 to v1.23.17", version),
			"make image UPSTREAM=v1.23.17")
	}
	return nil
}

// StagingVersion returns the version of the k8s.io staging modules of a Kubernetes release: v0.23.17 for v1.23.17.
func StagingVersion(version string) string {
	return "v0" + strings.TrimPrefix(version, semver.Major(version))
}

// ReadPin reads upstream.version. Each line is empty, a comment that starts with '#', or KEY=VALUE; each of the four
// keys must appear exactly once with a valid value, and other keys are errors.
func ReadPin(file string) (Pin, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Pin{}, nextstep.With(fmt.Errorf("cannot read the pin: %w", err), "git checkout -- upstream.version")
	}
	var pin Pin
	fields := map[string]struct {
		value *string
		form  *regexp.Regexp
	}{
		"KUBERNETES_VERSION": {&pin.Version, versionForm},
		"KUBERNETES_COMMIT":  {&pin.Commit, commitForm},
		"KUBERNETES_SUM":     {&pin.Sum, sumForm},
		"GO_VERSION":         {&pin.GoVersion, goForm},
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		field, known := fields[key]
		switch {
		case !known:
			return Pin{}, fmt.Errorf("%s:%d: unknown key %q", file, number, key)
		case *field.value != "":
			return Pin{}, fmt.Errorf("%s:%d: %s occurs twice", file, number, key)
		case !field.form.MatchString(value):
			return Pin{}, fmt.Errorf("%s:%d: %s=%q is not of the form %s", file, number, key, value, field.form)
		}
		*field.value = value
	}
	for key, field := range fields {
		if *field.value == "" {
			return Pin{}, fmt.Errorf("%s: no line %s=…", file, key)
		}
	}
	return pin, lines.Err()
}
