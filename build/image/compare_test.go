// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
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
		same, err := Compare(names[0], first, archive(changed))
		if want == "" {
			if err != nil || !strings.HasPrefix(same, "the same bytes: image sha256:") {
				t.Errorf("the same image: %q, %v", same, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "next: ") {
			t.Errorf("got %v, want %q and the next step", err, want)
		}
	}
}

func TestCompareReadsTheOlderForm(t *testing.T) {
	options := options(t)["amd64"]
	names, err := Names(Scheduler, version, "amd64", "")
	if err != nil {
		t.Fatal(err)
	}
	older, newer := filepath.Join(t.TempDir(), "older.tar"), filepath.Join(t.TempDir(), "newer.tar")
	items := map[name.Reference]v1.Image{}
	for _, tag := range names {
		items[tag] = &struct{ v1.Image }{assemble(t, options)}
	}
	if err := tarball.MultiRefWriteToFile(older, items); err != nil {
		t.Fatal(err)
	}
	if err := WriteArchive(newer, assemble(t, options), names); err != nil {
		t.Fatal(err)
	}
	same, err := Compare(names[0], older, newer)
	if want := "the same layers and configuration (the first archive has the older form"; err != nil || !strings.HasPrefix(same, want) {
		t.Errorf("got %q, %v, want %q", same, err, want)
	}
	same, err = Compare(names[0], newer, older)
	if want := "the same layers and configuration (the second archive has the older form"; err != nil || !strings.HasPrefix(same, want) {
		t.Errorf("got %q, %v, want %q", same, err, want)
	}
	options.Created = options.Created.Add(time.Second)
	if err := WriteArchive(newer, assemble(t, options), names); err != nil {
		t.Fatal(err)
	}
	if _, err := Compare(names[0], older, newer); err == nil {
		t.Error("another time is not a difference")
	}
}
