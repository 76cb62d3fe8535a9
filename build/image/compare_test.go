// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCompareNamesTheFirstDifference(t *testing.T) {
	base := options(t)["amd64"]
	base.SBOM = []byte("one\ntwo\n")
	names, err := Names(Scheduler, version, "amd64", "")
	if err != nil {
		t.Fatal(err)
	}
	archive := func(options Options) string {
		path := filepath.Join(t.TempDir(), "kube-scheduler.tar")
		if err := WriteArchive(path, assemble(t, options), names); err != nil {
			t.Fatal(err)
		}
		return path
	}
	built := func(code string, flags ...string) string {
		binary, program := filepath.Join(t.TempDir(), "binary"), filepath.Join(t.TempDir(), "main.go")
		write(t, program, code)
		command := exec.Command("go", append(append([]string{"build", "-o", binary}, flags...), program)...)
		command.Env = append(command.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v: %s", err, output)
		}
		return binary
	}
	first := archive(base)
	for want, change := range map[string]func(*Options){
		"": func(*Options) {},
		`/var/lib/db/sbom/kube-scheduler.spdx.json: line 2 is "two" and "three"`: func(o *Options) { o.SBOM = []byte("one\nthree\n") },
		"the first has /var/ where the second has the image's configuration":     func(o *Options) { o.SBOM = nil },
		`/usr/local/bin/kube-scheduler: line`:                                    func(o *Options) { o.Binary = built("package main\n\nfunc main() {}\n", "-tags=other") },
		"/usr/local/bin/kube-scheduler: the same Go and settings":                func(o *Options) { o.Binary = built("package main\n\nfunc main() { println(1) }\n") },
		"time 2023-02-22 13:26:30 +0000 UTC and mode":                            func(o *Options) { o.Created = o.Created.Add(time.Second) },
		"the image's configuration: line":                                        func(o *Options) { o.Commit = strings.Repeat("1", 40) },
	} {
		changed := base
		change(&changed)
		digest, err := Compare(names[0], first, archive(changed))
		if want == "" {
			if err != nil || !strings.HasPrefix(digest, "sha256:") {
				t.Errorf("the same image: %q, %v", digest, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "next: ") {
			t.Errorf("got %v, want %q and the next step", err, want)
		}
	}
}
