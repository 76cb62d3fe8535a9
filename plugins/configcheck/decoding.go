// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// configurationKind is the kind of the scheduler's configuration files.
const configurationKind = "KubeSchedulerConfiguration"

// Explain returns, in place of the error that the scheduler's decoder stopped at, all that is wrong with a
// configuration file: unknown fields, values of the wrong type, and the values that validation refuses in what is left
// without those. It is an aggregate; each of its errors names the path of the field. An error that is not the decoder's
// is returned as it is, and so is one about a file in which nothing is found to be wrong, or that is no YAML at all.
func Explain(configFile string, err error) error {
	data, readErr := os.ReadFile(configFile)
	if err == nil || readErr != nil {
		return err
	}
	return reader{
		scheme:   scheme.Scheme,
		decoder:  scheme.Codecs.UniversalDecoder(),
		validate: validation.ValidateKubeSchedulerConfiguration,
	}.explain(data, err)
}

// reader is what a configuration file is read with: the scheduler's own parts, or in tests others.
type reader struct {
	scheme   *runtime.Scheme
	decoder  runtime.Decoder
	validate func(*schedulerconfig.KubeSchedulerConfiguration) utilerrors.Aggregate
}

func (r reader) explain(data []byte, original error) error {
	// kube-scheduler returns the decoder's error as it got it.
	if _, _, err := r.decoder.Decode(data, nil, nil); err == nil || err.Error() != original.Error() {
		return original
	}
	document, errs, err := parse(data)
	if err != nil {
		return original
	}
	var kind kindOf
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &kind); err != nil {
		return original
	}
	if kindErrs := r.validateKind(kind); len(kindErrs) > 0 {
		return utilerrors.NewAggregate(append(errs, kindErrs...))
	}
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return original
	}
	object, err := r.scheme.New(gv.WithKind(kind.Kind))
	if err != nil {
		return original
	}

	check := &fieldCheck{scheme: r.scheme, version: gv}
	fixed := check.document(document, object)
	for _, wrong := range check.numbers {
		wrong.err.Detail = r.allowed(document, object, check.version, wrong)
	}
	errs = append(errs, check.errs...)
	if len(errs) == 0 {
		return original
	}
	return utilerrors.NewAggregate(append(errs, r.errorsOfTheRest(fixed, check.removed)...))
}

// errorsOfTheRest decodes and validates a document without the fields that were removed from it. An error that their
// absence alone may have caused is left out.
func (r reader) errorsOfTheRest(document []byte, removed []string) []error {
	invalid, err := r.validateDocument(document)
	if err != nil {
		return []error{err}
	}
	var errs []error
	for _, err := range invalid {
		if fieldErr, ok := err.(*field.Error); ok && !meaningful(fieldErr, removed) {
			continue
		}
		errs = append(errs, err)
	}
	return errs
}

// validateDocument decodes a document and returns what validation says about it. err is the decoder's.
func (r reader) validateDocument(document []byte) (invalid []error, err error) {
	object, gvk, err := r.decoder.Decode(document, nil, nil)
	if err != nil {
		return nil, err
	}
	cfg, ok := object.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, nil
	}
	// Validation asks it which version the file has, as at start.
	cfg.TypeMeta.APIVersion = gvk.GroupVersion().String()
	if aggregate := r.validate(cfg); aggregate != nil {
		return aggregate.Errors(), nil
	}
	return nil, nil
}

// meaningful tells whether an error says something about the file, and not only about what was removed from it, or what
// a flag may yet replace.
func meaningful(err *field.Error, removed []string) bool {
	// The flags --leader-elect… count more than the file, and they are not known here.
	if isWithin(err.Field, "leaderElection") {
		return false
	}
	for _, path := range removed {
		if isWithin(err.Field, path) {
			return false
		}
		// A rule, say, that has nothing to match once its pattern of the wrong type is gone.
		if err.Type == field.ErrorTypeRequired && isWithin(path, err.Field) {
			return false
		}
	}
	return true
}

// isWithin tells whether a path is another one or leads to a field below it.
func isWithin(path, above string) bool {
	return path == above || strings.HasPrefix(path, above+".") || strings.HasPrefix(path, above+"[")
}

// kindOf is what says which kind a document or the args of a plugin are of.
type kindOf struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// validateKind checks that a document is of a kind and version of configuration that this scheduler knows.
func (r reader) validateKind(kind kindOf) []error {
	var errs []error
	var versions []string
	known := false
	for _, gv := range r.scheme.PrioritizedVersionsForGroup(schedulerconfig.GroupName) {
		if r.scheme.Recognizes(gv.WithKind(configurationKind)) && gv.Version != runtime.APIVersionInternal {
			versions = append(versions, gv.String())
			known = known || gv.String() == kind.APIVersion
		}
	}
	if kind.APIVersion == "" {
		errs = append(errs, field.Required(field.NewPath("apiVersion"), "one of "+strings.Join(versions, ", ")))
	} else if !known {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), kind.APIVersion, versions))
	}
	if kind.Kind == "" {
		errs = append(errs, field.Required(field.NewPath("kind"), configurationKind))
	} else if kind.Kind != configurationKind {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), kind.Kind, []string{configurationKind}))
	}
	return errs
}

// parse turns a file, YAML or JSON, into JSON, and lists the keys that it holds twice. It fails where a file cannot be
// read at all.
func parse(data []byte) (document json.RawMessage, duplicates []error, err error) {
	if utilyaml.IsJSONBuffer(data) {
		var value interface{}
		duplicates, err = kjson.UnmarshalStrict(data, &value, kjson.DisallowDuplicateFields)
		return data, duplicates, err
	}
	if document, err = yaml.YAMLToJSON(data); err != nil {
		data = quoteNumbersWithoutJSON(data)
		document, err = yaml.YAMLToJSON(data)
	}
	if err != nil {
		return nil, nil, err
	}
	if _, err := yaml.YAMLToJSONStrict(data); err != nil {
		duplicates = separateLines(err)
	}
	return document, duplicates, nil
}

// numberWithoutJSON is a number that YAML can write and JSON cannot, where a value may begin and end.
var numberWithoutJSON = regexp.MustCompile(`(?m)([:,\[-][ \t]*)([-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))([ \t]*(?:[,}\]#\r]|$))`)

// quoteNumbersWithoutJSON makes text of infinity and of what is not a number, so that they are found where a number is
// wanted, with the path of the field.
func quoteNumbersWithoutJSON(data []byte) []byte {
	return numberWithoutJSON.ReplaceAll(data, []byte(`$1"$2"$3`))
}

// separateLines takes the YAML parser's error apart, which has a heading and then a line for each thing it found.
func separateLines(err error) []error {
	lines := strings.Split(err.Error(), "\n")
	if len(lines) == 1 {
		return []error{err}
	}
	var errs []error
	for _, line := range lines[1:] {
		errs = append(errs, fmt.Errorf("%s", strings.TrimSpace(line)))
	}
	return errs
}
