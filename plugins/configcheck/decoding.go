// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
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
	var kind metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &kind); err != nil {
		return original
	}
	if kindErrs := r.wrongKind(kind); len(kindErrs) > 0 {
		return utilerrors.NewAggregate(append(errs, kindErrs...))
	}
	found, err := r.find(document, schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
	if errs = append(errs, found.errs...); err != nil || len(errs) == 0 {
		return original
	}
	return utilerrors.NewAggregate(append(errs, r.errorsOfTheRest(found)...))
}

// errorsOfTheRest validates what the decoder accepts of a document. An error that the absence of the rest alone may have
// caused is left out.
func (r reader) errorsOfTheRest(found *search) []error {
	object, gvk, err := r.decoder.Decode(encode(found.accepted), nil, nil)
	if err != nil {
		return []error{err}
	}
	cfg, ok := object.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil
	}
	// Validation asks it which version the file has, as at start.
	cfg.TypeMeta.APIVersion = gvk.GroupVersion().String()
	aggregate := r.validate(cfg)
	if aggregate == nil {
		return nil
	}
	var errs []error
	for _, err := range aggregate.Errors() {
		if fieldErr, ok := err.(*field.Error); !ok || meaningful(fieldErr, found.refused) {
			errs = append(errs, err)
		}
	}
	return errs
}

// meaningful tells whether an error says something about the file, and not only about what was refused in it, or what a
// flag may yet replace.
func meaningful(err *field.Error, refused []string) bool {
	// The flags --leader-elect… count more than the file, and they are not known here.
	if isWithin(err.Field, "leaderElection") {
		return false
	}
	for _, path := range refused {
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

// wrongKind checks that a document is of a kind and version of configuration that this scheduler knows.
func (r reader) wrongKind(kind metav1.TypeMeta) []error {
	var versions []string
	for _, gv := range r.scheme.PrioritizedVersionsForGroup(schedulerconfig.GroupName) {
		if r.scheme.Recognizes(gv.WithKind(configurationKind)) {
			versions = append(versions, gv.String())
		}
	}
	var errs []error
	check := func(name, given string, known []string) {
		if given == "" {
			errs = append(errs, field.Required(field.NewPath(name), strings.Join(known, " or ")))
		} else if !sets.NewString(known...).Has(given) {
			errs = append(errs, field.NotSupported(field.NewPath(name), given, known))
		}
	}
	check("apiVersion", kind.APIVersion, versions)
	check("kind", kind.Kind, []string{configurationKind})
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
		data = numberWithoutJSON.ReplaceAll(data, []byte(`$1"$2"$3`))
		document, err = yaml.YAMLToJSON(data)
	}
	if err != nil {
		return nil, nil, err
	}
	if _, err := yaml.YAMLToJSONStrict(data); err != nil {
		// A heading, and then a line for each thing it found.
		for _, line := range strings.Split(err.Error(), "\n")[1:] {
			duplicates = append(duplicates, fmt.Errorf("%s", strings.TrimSpace(line)))
		}
	}
	return document, duplicates, nil
}

// numberWithoutJSON is a number that YAML can write and JSON cannot, infinity or what is not a number, where a value may
// begin and end. As text it is found where a number is wanted, with the path of the field.
var numberWithoutJSON = regexp.MustCompile(`(?m)([:,\[-][ \t]*)([-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))([ \t]*(?:[,}\]#\r]|$))`)

// encode is for what was JSON before: it cannot fail.
func encode(value interface{}) []byte {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return encoded
}
