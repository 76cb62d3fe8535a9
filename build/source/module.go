// SPDX-License-Identifier: Apache-2.0

// Package source makes the Kubernetes source tree, and verifies that it is the requested one.
//
// A release of Kubernetes is published twice: as a git tag, and as Go modules (k8s.io/kubernetes and the staging
// modules k8s.io/api, k8s.io/client-go, …). A module zip is not a checkout: it has no symbolic links, no executable
// bits, no vendored packages and no nested modules. FromModules restores what the build needs.
package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"

	"kube-scheduler-fork/build/logtail"
	"kube-scheduler-fork/build/nextstep"
)

// ErrNotAvailable is returned when a module proxy does not offer a module at all. The network, the pin and the patches
// are not at fault.
var ErrNotAvailable = errors.New("not available from the module proxy")

const (
	kubernetesModule = "k8s.io/kubernetes"
	stagingDir       = "staging/src/k8s.io"
)

// symbolicLinks maps paths to targets of upstream's links that the build needs, in addition to those of the staging
// modules below vendor/k8s.io.
var symbolicLinks = map[string]string{
	"Makefile":                 "build/root/Makefile",
	"Makefile.generated_files": "build/root/Makefile.generated_files",
}

// dispensable are the staging modules that go.mod requires but no package of the scheduler, the API server or kubeadm
// imports. If the proxy does not offer one, an empty module replaces it.
var dispensable = map[string]bool{
	"sample-apiserver":  true,
	"sample-cli-plugin": true,
	"sample-controller": true,
}

// Facts describes a source tree.
type Facts struct {
	// Version is the Kubernetes tag.
	Version string
	// Commit is the upstream commit, 40 hex digits.
	Commit string
	// Sum is the h1: sum of the module k8s.io/kubernetes.
	Sum string
	// Time is when upstream made the commit.
	Time time.Time
}

// download is one module's result of `go mod download -json`.
type download struct {
	Path, Version, Error, Info, GoMod, Zip, Sum, GoModSum string
	Origin                                                struct{ Hash string }
}

// FromModules writes the tree of a Kubernetes release into dir, which must be empty, from Go modules alone. It hashes
// every zip that it uses again and compares the sum with the one that the go command verified in the checksum database.
// The caller compares Facts with its pin.
func FromModules(ctx context.Context, version, dir string, progress io.Writer) (Facts, error) {
	if err := CheckVersion(version); err != nil {
		return Facts{}, err
	}
	if err := needChecksumDatabase(ctx); err != nil {
		return Facts{}, err
	}
	fmt.Fprintf(progress, "  modules: %s@%s\n", kubernetesModule, version)
	downloads, err := downloadModules(ctx, []string{kubernetesModule + "@" + version})
	if err != nil {
		return Facts{}, err
	}
	main := downloads[0]
	if main.Error != "" {
		return Facts{}, downloadError(main)
	}
	facts, err := factsOf(main)
	if err != nil {
		return Facts{}, err
	}
	if err := extract(main, dir); err != nil {
		return Facts{}, err
	}
	staging, err := stagingModules(filepath.Join(dir, "go.mod"))
	if err != nil {
		return Facts{}, err
	}
	if err := addStaging(ctx, version, dir, staging, progress); err != nil {
		return Facts{}, err
	}
	for link, target := range symbolicLinks {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			return Facts{}, err
		}
	}
	if err := vendor(ctx, dir, staging, progress); err != nil {
		return Facts{}, err
	}
	return facts, executableScripts(dir)
}

// needChecksumDatabase returns an error if the settings would leave modules without a pinned sum unverified.
func needChecksumDatabase(ctx context.Context) error {
	off, err := ChecksumDatabaseOff(ctx)
	if off {
		return nextstep.With(
			errors.New("the checksum database is switched off (GOSUMDB=off), so downloads cannot be verified"),
			"go env -u GOSUMDB, or unset GOSUMDB; make image SOURCE=git needs it only for a release that is not pinned")
	}
	return err
}

// ChecksumDatabaseOff reports whether the go command compares sums only with those that are pinned.
func ChecksumDatabaseOff(ctx context.Context) (bool, error) {
	database, err := goCommand(ctx, os.TempDir(), "env", "GOSUMDB").Output()
	if err != nil {
		return false, fmt.Errorf("go env GOSUMDB: %w", err)
	}
	return strings.TrimSpace(string(database)) == "off", nil
}

// downloadModules downloads modules into the module cache, in their order; the go command compares each with the
// checksum database. A failed download has its Error set.
func downloadModules(ctx context.Context, modules []string) ([]download, error) {
	// A private-module setting that covers k8s.io would switch the checksum database off for these modules.
	command := goCommand(ctx, os.TempDir(), append([]string{"mod", "download", "-json"}, modules...)...)
	command.Env = append(command.Env, "GONOSUMDB=", "GOPRIVATE=", "GONOSUMCHECK=")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, runErr := command.Output()
	var downloads []download
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var d download
		if err := decoder.Decode(&d); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go mod download: %w", err)
		}
		downloads = append(downloads, d)
	}
	if len(downloads) != len(modules) {
		return nil, fmt.Errorf("go mod download: %w: %s", runErr, strings.TrimSpace(stderr.String()))
	}
	return downloads, nil
}

// goCommand returns a go command in module mode, with the user's proxy settings but without settings that would change
// its output.
func goCommand(ctx context.Context, dir string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GO111MODULE=on", "GOFLAGS=-mod=mod", "GOWORK=off", "GOTOOLCHAIN=local")
	return command
}

func downloadError(d download) error {
	name := d.Path + "@" + d.Version
	switch {
	case strings.Contains(d.Error, "checksum mismatch"), strings.Contains(d.Error, "SECURITY ERROR"):
		return nextstep.With(
			fmt.Errorf("%s: the download does not match the checksum database:\n%s", name, d.Error),
			"go clean -modcache, then run the same command again; if it fails again, the module proxy (go env GOPROXY) serves a modified module")
	case strings.Contains(d.Error, "403 Forbidden"), strings.Contains(d.Error, "404 Not Found"),
		strings.Contains(d.Error, "410 Gone"), strings.Contains(d.Error, "unknown revision"),
		strings.Contains(d.Error, "reading file://") && strings.Contains(d.Error, "no such file or directory"):
		return nextstep.With(fmt.Errorf("%s: %w: %s", name, ErrNotAvailable, d.Error),
			"make image SOURCE=git, or another UPSTREAM=v1.23.x")
	}
	return nextstep.With(fmt.Errorf("%s cannot be downloaded: %s", name, d.Error),
		"check that the module proxy (go env GOPROXY) and the checksum database (go env GOSUMDB) can be reached, "+
			"then run the same command again")
}

func factsOf(d download) (Facts, error) {
	var info struct{ Time time.Time }
	content, err := os.ReadFile(d.Info)
	if err != nil {
		return Facts{}, err
	}
	if err := json.Unmarshal(content, &info); err != nil {
		return Facts{}, fmt.Errorf("%s: %w", d.Info, err)
	}
	return Facts{Version: d.Version, Commit: d.Origin.Hash, Sum: d.Sum, Time: info.Time.UTC()}, nil
}

// extract hashes the whole module zip, and then writes its files below dir, read-only.
func extract(d download, dir string) error {
	sum, err := dirhash.HashZip(d.Zip, dirhash.Hash1)
	if err != nil {
		return nextstep.With(fmt.Errorf("%s: %w", d.Zip, err), "go clean -modcache")
	}
	if sum != d.Sum {
		return nextstep.With(
			fmt.Errorf("%s@%s: the zip in the module cache has the sum %s, wanted %s", d.Path, d.Version, sum, d.Sum),
			"go clean -modcache, then run the same command again")
	}
	return zip.Unzip(dir, module.Version{Path: d.Path, Version: d.Version}, d.Zip)
}

// stagingModules returns the last path elements of the modules that go.mod replaces with directories of the tree.
func stagingModules(goMod string) ([]string, error) {
	file, err := parseModFile(goMod)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, replace := range file.Replace {
		if name, ok := strings.CutPrefix(replace.New.Path, "./"+stagingDir+"/"); ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no replace directive for ./%s/…, so this is not a Kubernetes tree", goMod, stagingDir)
	}
	return names, nil
}

func parseModFile(path string) (*modfile.File, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(path, content, nil)
}

func addStaging(ctx context.Context, version, dir string, names []string, progress io.Writer) error {
	stagingVersion := StagingVersion(version)
	var modules []string
	for _, name := range names {
		modules = append(modules, "k8s.io/"+name+"@"+stagingVersion)
	}
	fmt.Fprintf(progress, "  modules: %d staging modules at %s\n", len(names), stagingVersion)
	downloads, err := downloadModules(ctx, modules)
	if err != nil {
		return err
	}
	staging := map[string]bool{}
	for _, name := range names {
		staging["k8s.io/"+name] = true
	}
	for _, d := range downloads {
		name := strings.TrimPrefix(d.Path, "k8s.io/")
		target := filepath.Join(dir, filepath.FromSlash(stagingDir), name)
		if d.Error != "" {
			err := downloadError(d)
			if !dispensable[name] || !errors.Is(err, ErrNotAvailable) {
				return err
			}
			fmt.Fprintf(progress, "  modules: %s is not available; an empty module replaces it (the scheduler does not use it)\n", d.Path)
			if err := emptyModule(dir, target, d.Path); err != nil {
				return err
			}
			continue
		}
		if err := extract(d, target); err != nil {
			return err
		}
		if err := unpublishModFile(filepath.Join(target, "go.mod"), stagingVersion, staging); err != nil {
			return err
		}
		if err := unpublishSumFile(filepath.Join(target, "go.sum"), stagingVersion, staging); err != nil {
			return err
		}
	}
	return nil
}

// emptyModule writes a module without packages at the language version of the whole tree, which vendor/modules.txt
// records.
func emptyModule(dir, target, path string) error {
	main, err := parseModFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	content := fmt.Sprintf("module %s\n\ngo %s\n", path, main.Go.Version)
	return os.WriteFile(filepath.Join(target, "go.mod"), []byte(content), 0o644)
}

// unpublishModFile undoes the changes that publishing makes to a staging module's go.mod: in the tree, staging modules
// require each other at v0.0.0 and replace each other, and themselves, with the directories next to them.
func unpublishModFile(path, stagingVersion string, staging map[string]bool) error {
	file, err := parseModFile(path)
	if err != nil {
		return err
	}
	for _, require := range file.Require {
		if staging[require.Mod.Path] && require.Mod.Version == stagingVersion {
			if err := file.AddRequire(require.Mod.Path, "v0.0.0"); err != nil {
				return err
			}
		}
	}
	// All replacements are in one block, which AddReplace would not make.
	block := &modfile.LineBlock{Token: []string{"replace"}}
	add := func(tokens ...string) {
		block.Line = append(block.Line, &modfile.Line{Token: tokens, InBlock: true})
	}
	sibling := func(path string) { add(path, "=>", "../"+strings.TrimPrefix(path, "k8s.io/")) }
	sibling(file.Module.Mod.Path)
	for _, replace := range file.Replace {
		if staging[replace.Old.Path] {
			sibling(replace.Old.Path)
		} else {
			add(replace.Old.Path, "=>", replace.New.Path, replace.New.Version)
		}
		if err := file.DropReplace(replace.Old.Path, replace.Old.Version); err != nil {
			return err
		}
	}
	file.Cleanup()
	file.Syntax.Stmt = append(file.Syntax.Stmt, block)
	file.SortBlocks()
	file.Syntax.Cleanup()
	return rewrite(path, modfile.Format(file.Syntax))
}

// rewrite replaces a read-only file.
func rewrite(path string, content []byte) error {
	if err := os.Chmod(path, 0o644); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// unpublishSumFile removes the sums of staging modules: in the tree they are directories, which have no sums.
func unpublishSumFile(path, stagingVersion string, staging map[string]bool) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	var kept strings.Builder
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && staging[fields[0]] && strings.TrimSuffix(fields[1], "/go.mod") == stagingVersion {
			continue
		}
		kept.WriteString(line)
	}
	return rewrite(path, []byte(kept.String()))
}

// vendor fills vendor/ as upstream's own update does, and verifies the result: modules.txt must equal the published
// module's copy byte for byte.
func vendor(ctx context.Context, dir string, staging []string, progress io.Writer) error {
	vendorDir := filepath.Join(dir, "vendor")
	published := map[string][]byte{}
	for _, name := range []string{"modules.txt", "OWNERS"} {
		content, err := os.ReadFile(filepath.Join(vendorDir, name))
		if err != nil {
			return err
		}
		published[name] = content
	}
	fmt.Fprintf(progress, "  modules: go mod vendor\n")
	command := goCommand(ctx, dir, "mod", "vendor")
	if output, err := command.CombinedOutput(); err != nil {
		return nextstep.With(fmt.Errorf("go mod vendor: %w: %s", err, logtail.Last(string(output), 5)),
			"check that the module proxy (go env GOPROXY) can be reached, then run the same command again")
	}
	made, err := os.ReadFile(filepath.Join(vendorDir, "modules.txt"))
	if err != nil {
		return err
	}
	if !bytes.Equal(made, published["modules.txt"]) {
		return nextstep.With(
			errors.New("vendor/modules.txt differs from the one that upstream published, so the tree would not be upstream's"),
			"make image SOURCE=git, and report this with `go version` (%d bytes made, %d published)",
			len(made), len(published["modules.txt"]))
	}
	if err := os.WriteFile(filepath.Join(vendorDir, "OWNERS"), published["OWNERS"], 0o644); err != nil {
		return err
	}
	for _, name := range staging {
		link := filepath.Join(vendorDir, "k8s.io", name)
		if err := os.RemoveAll(link); err != nil {
			return err
		}
		if err := os.Symlink("../../"+stagingDir+"/"+name, link); err != nil {
			return err
		}
	}
	return nil
}

// executableScripts sets the executable bit of every file that starts with "#!", and clears it on every other file. In
// upstream, a few scripts lack the bit; they are run through their interpreter, or sourced.
func executableScripts(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		var start [2]byte
		mode := fs.FileMode(0o644)
		if _, err := io.ReadFull(file, start[:]); err == nil && string(start[:]) == "#!" {
			mode = 0o755
		}
		return os.Chmod(path, mode)
	})
}
