// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"kube-scheduler-fork/build/nextstep"
)

// The types of the statement. docs/air-gapped.md explains those of this project.
const (
	predicateType = "https://slsa.dev/provenance/v1"
	buildType     = "urn:kube-scheduler-fork:make-release:v1"
	builder       = "urn:kube-scheduler-fork:make-release"
)

// versionParts matches the suffix in a version.
var versionParts = regexp.MustCompile(`\+(.*)\.[0-9a-f]{12}$`)

// provenance returns an in-toto statement with SLSA's predicate: how the files of a release were made, and from what. It
// has no time, so the same inputs give the same bytes.
func provenance(options Options, subjects []file, modules []Module) ([]byte, error) {
	chosen := []any{}
	for _, module := range options.Carried {
		chosen = append(chosen, module.Path+"@"+module.Version)
	}
	var suffix string
	if found := versionParts.FindStringSubmatch(options.Version); found != nil {
		suffix = found[1]
	}
	materials, err := materials(options, modules)
	if err != nil {
		return nil, err
	}
	parameters, err := structpb.NewStruct(map[string]any{
		"UPSTREAM": options.Kubernetes, "ARCH": options.Architecture, "VERSION_SUFFIX": suffix, "modules": chosen,
	})
	if err != nil {
		return nil, err
	}
	predicate := &slsa.Provenance{
		BuildDefinition: &slsa.BuildDefinition{BuildType: buildType, ExternalParameters: parameters, ResolvedDependencies: materials},
		RunDetails:      &slsa.RunDetails{Builder: &slsa.Builder{Id: builder}},
	}
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: predicateType, Predicate: &structpb.Struct{}}
	for _, file := range subjects {
		statement.Subject = append(statement.Subject, material(file.name, "", "sha256", fmt.Sprintf("%x", sha256.Sum256(file.content))))
	}
	content, err := protojson.Marshal(predicate)
	if err == nil {
		err = protojson.Unmarshal(content, statement.Predicate)
	}
	if err := errors.Join(err, predicate.Validate(), statement.Validate()); err != nil {
		return nil, fmt.Errorf("the provenance: %w", err)
	}
	if content, err = protojson.Marshal(statement); err != nil {
		return nil, fmt.Errorf("the provenance: %w", err)
	}
	// protojson puts blanks at random places.
	var indented bytes.Buffer
	err = json.Indent(&indented, content, "", "  ")
	return append(indented.Bytes(), '\n'), err
}

// materials returns what a release is made from: upstream's source, this project, Go, the patches and the modules.
func materials(options Options, modules []Module) ([]*intoto.ResourceDescriptor, error) {
	upstream := moduleMaterial(Module{Path: kubernetes, Version: options.Kubernetes, Sum: options.Sum})
	if options.Commit != "" {
		upstream.Digest["gitCommit"] = options.Commit
	}
	compiler, err := os.ReadFile(filepath.Join(options.GoRoot, "bin/go"))
	if err != nil {
		return nil, nextstep.With(err, "use the Go from go.dev")
	}
	number := strings.TrimPrefix(options.Pin.GoVersion, "go")
	found := []*intoto.ResourceDescriptor{
		upstream,
		material(fmt.Sprintf("bin/go of %s for %s/%s", options.Pin.GoVersion, runtime.GOOS, runtime.GOARCH), locator("generic", "go", number),
			"sha256", fmt.Sprintf("%x", sha256.Sum256(compiler))),
	}
	if options.ProjectCommit != "" {
		found = append(found, material("this project", "", "gitCommit", options.ProjectCommit))
	}
	for _, patch := range options.Series {
		found = append(found, material("patches/"+patch.Name, "", "sha256", fmt.Sprintf("%x", sha256.Sum256(patch.Mail))))
	}
	for _, module := range modules {
		// Staging modules are part of upstream's source.
		if module.Sum != "" {
			found = append(found, moduleMaterial(module))
		}
	}
	return found, nil
}

func material(name, uri, algorithm, digest string) *intoto.ResourceDescriptor {
	return &intoto.ResourceDescriptor{Name: name, Uri: uri, Digest: map[string]string{algorithm: digest}}
}

// moduleMaterial returns a Go module with its h1: sum as in-toto writes it, in hex.
func moduleMaterial(module Module) *intoto.ResourceDescriptor {
	// Validate reports a sum that is not one.
	sum, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:"))
	return material(module.Path+"@"+module.Version, locator("golang", module.Path, module.Version), "dirHash", fmt.Sprintf("%x", sum))
}
