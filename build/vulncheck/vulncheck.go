// SPDX-License-Identifier: Apache-2.0

// Package vulncheck looks for known vulnerabilities in the programs of a release with govulncheck, and states in an
// OpenVEX document why those of linked modules that remain do not concern them.
package vulncheck

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/openvex/go-vex/pkg/vex"

	"kube-scheduler-fork/build/nextstep"
)

// Program is a program of a release.
type Program struct {
	// Name is the file name of the binary.
	Name string
	// Directory is the module that it is compiled in, and Package its main package there.
	Directory, Package string
	// Flags are the build flags of the go command.
	Flags []string
}

// Found is a known vulnerability in a module that a program requires.
type Found struct {
	Program, ID, Module, Version string
	// Package is the vulnerable package if it is linked, and Function what the program calls of it, if it does.
	Package, Function string
	// Named says that the database names the vulnerable packages of the module.
	Named bool
}

func (f Found) String() string {
	text := fmt.Sprintf("%s: %s in %s@%s", f.Program, f.ID, f.Module, f.Version)
	switch {
	case f.Function != "":
		return text + ", " + f.Package + "." + f.Function + " is called"
	case f.Package != "":
		return text + ", " + f.Package + " is linked"
	}
	return text + ", no vulnerable package is linked"
}

// Scan runs govulncheck on a program and returns what it finds, each vulnerability of a module once, at the most
// precise level. database is the URL of a database; the Go project's if it is empty.
func Scan(ctx context.Context, govulncheck, database string, program Program) ([]Found, error) {
	arguments := []string{"-C", program.Directory, "-format", "json"}
	if database != "" {
		arguments = append(arguments, "-db", database)
	}
	for _, flag := range program.Flags {
		if tags, is := strings.CutPrefix(flag, "-tags="); is {
			arguments = append(arguments, "-tags", tags)
		}
	}
	output, err := run(ctx, program, govulncheck, append(arguments, program.Package)...)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("govulncheck of %s: %w", program.Name, err),
			"make vulncheck VULNDB=file:///path/to/vulndb, if it is the online database that cannot be read; make tree, if it is the source")
	}
	return parse(program.Name, output)
}

// run executes a command with the program's flags for the go command.
func run(ctx context.Context, program Program, name string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Env = append(os.Environ(), "GOFLAGS="+strings.Join(program.Flags, " "), "GOOS=linux", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return output, err
}

// message is one of govulncheck's messages.
type message struct {
	OSV *struct {
		ID       string `json:"id"`
		Affected []struct {
			Package struct {
				Name string `json:"name"`
			} `json:"package"`
			Specific struct {
				Imports []struct{} `json:"imports"`
			} `json:"ecosystem_specific"`
		} `json:"affected"`
	} `json:"osv"`
	Finding *struct {
		OSV   string `json:"osv"`
		Trace []struct {
			Module, Version, Package, Function, Receiver string
		} `json:"trace"`
	} `json:"finding"`
}

// decode reads values in JSON that follow each other.
func decode[T any](content []byte) (values []T, err error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	for {
		var value T
		switch err := decoder.Decode(&value); {
		case errors.Is(err, io.EOF):
			return values, nil
		case err != nil:
			return nil, err
		}
		values = append(values, value)
	}
}

// parse reads govulncheck's stream of JSON messages.
func parse(program string, output []byte) ([]Found, error) {
	found := map[Found]Found{}
	named := map[[2]string]bool{}
	messages, err := decode[message](output)
	if err != nil {
		return nil, fmt.Errorf("the output of govulncheck: %w", err)
	}
	for _, message := range messages {
		if message.OSV != nil {
			for _, affected := range message.OSV.Affected {
				named[[2]string{message.OSV.ID, affected.Package.Name}] = len(affected.Specific.Imports) > 0
			}
		}
		if message.Finding == nil || len(message.Finding.Trace) == 0 {
			continue
		}
		at := message.Finding.Trace[0]
		each := Found{Program: program, ID: message.Finding.OSV, Module: at.Module, Version: at.Version}
		known := found[each]
		precise := each
		precise.Package = cmp.Or(known.Package, at.Package)
		precise.Function = cmp.Or(known.Function, at.Function)
		precise.Named = named[[2]string{each.ID, each.Module}]
		found[each] = precise
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Module, b.Module))
	}), nil
}

// linked returns the Go files of each package that a program is compiled from.
func linked(ctx context.Context, program Program) (map[string][]string, error) {
	output, err := run(ctx, program, "go", "-C", program.Directory, "list", "-deps", "-json=ImportPath,GoFiles", program.Package)
	if err != nil {
		return nil, nextstep.With(fmt.Errorf("the packages of %s: %w", program.Name, err), "make tree")
	}
	list, err := decode[struct {
		ImportPath string
		GoFiles    []string
	}](output)
	packages := map[string][]string{}
	for _, each := range list {
		packages[strings.TrimPrefix(each.ImportPath, "k8s.io/kubernetes/vendor/")] = each.GoFiles
	}
	return packages, err
}

// Explain divides what was found in a program into what it does not contain, and the rest. It does not contain a
// vulnerability if none of the vulnerable packages is linked. For a vulnerability of Kubernetes itself these are the
// packages in kubernetes.go, and it must be there; the table does not overrule govulncheck where the database names
// functions that are called. For Kubernetes' tree, which govulncheck does not know to be a release, all of the table is
// looked for; what the table lacks is found in the other programs, which have Kubernetes among their modules.
func Explain(ctx context.Context, program Program, version string, all []Found) (explained, left []Found, err error) {
	packages, err := linked(ctx, program)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range all {
		absent := f.Package == ""
		if f.Module == kubernetes || f.Module == "k8s.io/mount-utils" {
			where, known := ofKubernetes[f.ID]
			absent = known && !has(packages, where) && !(f.Named && f.Function != "")
		}
		if !absent {
			left = append(left, f)
			continue
		}
		f.Package, f.Function, f.Named = "", "", false
		explained = append(explained, f)
	}
	if _, of := packages["k8s.io/kubernetes/pkg/scheduler"]; !of || slices.ContainsFunc(all, func(f Found) bool { return f.Module == kubernetes }) {
		return explained, left, nil
	}
	for _, id := range slices.Sorted(maps.Keys(ofKubernetes)) {
		f := Found{Program: program.Name, ID: id, Module: kubernetes, Version: version}
		if !has(packages, ofKubernetes[id]) {
			explained = append(explained, f)
			continue
		}
		f.Package = ofKubernetes[id][0]
		left = append(left, f)
	}
	return explained, left, nil
}

// has reports whether any of the packages or files is compiled into a program.
func has(packages map[string][]string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		if path.Ext(name) != ".go" {
			_, is := packages[name]
			return is
		}
		return slices.Contains(packages[path.Dir(name)], path.Base(name))
	})
}

// Document returns the OpenVEX document that states for each explained vulnerability that the program does not contain
// the code.
func Document(explained []Found, now time.Time) (*vex.VEX, error) {
	document := vex.New()
	document.Author, document.AuthorRole = "kube-scheduler-build", "made by make vulncheck"
	document.Timestamp = &now
	at := map[string]int{}
	for _, f := range explained {
		i, known := at[f.ID]
		if !known {
			i = len(document.Statements)
			at[f.ID] = i
			document.Statements = append(document.Statements, vex.Statement{
				Vulnerability: vex.Vulnerability{Name: vex.VulnerabilityID(f.ID)},
				Status:        vex.StatusNotAffected, Justification: vex.VulnerableCodeNotPresent,
			})
		}
		statement := &document.Statements[i]
		component := vex.Subcomponent{Component: vex.Component{ID: "pkg:golang/" + f.Module + "@" + f.Version}}
		statement.Products = append(statement.Products, vex.Product{
			Component: vex.Component{ID: "pkg:generic/" + f.Program}, Subcomponents: []vex.Subcomponent{component},
		})
	}
	for _, statement := range document.Statements {
		if err := statement.Validate(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(document.Statements, func(a, b vex.Statement) int { return cmp.Compare(a.Vulnerability.Name, b.Vulnerability.Name) })
	_, err := document.GenerateCanonicalID()
	return &document, err
}

// Compare returns what a document has no statement for, and the vulnerabilities that it has statements for although
// nothing was found: the database lacks them, or a module has changed.
func Compare(document *vex.VEX, explained []Found) (added []Found, gone []string) {
	added = slices.DeleteFunc(slices.Clone(explained), func(f Found) bool {
		return slices.ContainsFunc(document.Statements, func(s vex.Statement) bool {
			return s.Matches(f.ID, "pkg:generic/"+f.Program, []string{"pkg:golang/" + f.Module + "@" + f.Version})
		})
	})
	for _, s := range document.Statements {
		if !slices.ContainsFunc(explained, func(f Found) bool { return vex.VulnerabilityID(f.ID) == s.Vulnerability.Name }) {
			gone = append(gone, string(s.Vulnerability.Name))
		}
	}
	return added, gone
}
