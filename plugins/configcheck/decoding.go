// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// configurationKind is the kind of the scheduler's configuration files.
const configurationKind = "KubeSchedulerConfiguration"

// Explain replaces the first error of the scheduler's decoder with an aggregate of all errors of the configuration
// file: unknown fields, values of a wrong type, and other values that validation rejects. Each error names the
// path of its field. Explain returns an error unchanged if it is not the decoder's, if the file has no error, or if the
// file is not YAML.
func Explain(configFile string, original error) error { return ExplainAll(configFile, nil, original) }

// ExplainAll returns the errors of Explain, and those of enabled plugins that a scheduler does not have. registry has the
// plugins that the command adds to those of the scheduler; nil: plugins are not checked.
func ExplainAll(configFile string, registry frameworkruntime.Registry, original error) error {
	data, err := os.ReadFile(configFile)
	if original == nil || err != nil {
		return original
	}
	// kube-scheduler returns the decoder's error unchanged.
	_, _, err = scheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
	if err == nil || err.Error() != original.Error() {
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
	if readAs := sameFields[kind.APIVersion]; readAs != "" && kind.Kind == configurationKind {
		errs = append(errs, wrongVersion(data, kind.APIVersion, readAs))
		kind.APIVersion = readAs
	}
	if kindErrs := wrongKind(kind); len(kindErrs) > 0 {
		return utilerrors.NewAggregate(append(errs, kindErrs...))
	}
	found := find(document, schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
	if errs = append(errs, found.errs...); len(errs) == 0 {
		return original
	}
	return utilerrors.NewAggregate(append(errs, found.errorsOfTheRest(registry)...))
}

// sameFields has the versions of other releases of Kubernetes, with the most similar one that this scheduler reads: the
// fields of v1 are those of v1beta3 and later ones, and the default plugins of v1beta1 have the weights of v1beta2.
var sameFields = map[string]string{
	schedulerconfig.GroupName + "/v1":      schedulerconfig.GroupName + "/v1beta3",
	schedulerconfig.GroupName + "/v1beta1": schedulerconfig.GroupName + "/v1beta2",
}

// versionLine matches the line with a file's version: not indented, or quoted as in JSON.
var versionLine = regexp.MustCompile(`(?m)^(apiVersion|[ \t{]*"apiVersion")\s*:`)

// wrongVersion returns the error for a file of another release of Kubernetes. The other errors are those that the file
// has after the change.
func wrongVersion(data []byte, given, readAs string) error {
	where := ""
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	// In JSON, an object inside may have a version too.
	if at := versionLine.FindAllIndex(data, 2); len(at) == 1 || len(at) > 1 && !utilyaml.IsJSONBuffer(data) {
		where = fmt.Sprintf(" in line %d", 1+bytes.Count(data[:at[0][0]], []byte("\n")))
	}
	return field.Invalid(field.NewPath("apiVersion"), given,
		"Kubernetes 1.23 does not read this version: write apiVersion: "+readAs+where+", and see docs/known-as.md#v1-and-v1beta1-files")
}

// errorsOfTheRest validates a document without its rejected fields. It omits errors that their absence may cause.
func (s *search) errorsOfTheRest(registry frameworkruntime.Registry) []error {
	s.document["apiVersion"] = s.version.String()
	object, _, err := scheme.Codecs.UniversalDecoder().Decode(encode(s.document), nil, nil)
	if err != nil {
		return []error{err}
	}
	config := object.(*schedulerconfig.KubeSchedulerConfiguration)
	config.APIVersion = s.version.String()
	var errs []error
	if aggregate := validation.ValidateKubeSchedulerConfiguration(config); aggregate != nil {
		for _, err := range aggregate.Errors() {
			if fieldErr, ok := err.(*field.Error); !ok || meaningful(fieldErr, s.refused) {
				errs = append(errs, err)
			}
		}
	}
	all := frameworkplugins.NewInTreeRegistry()
	if registry == nil || all.Merge(registry) != nil {
		return errs
	}
	for i := range config.Profiles {
		errs = append(errs, wrongPlugins(field.NewPath("profiles").Index(i).Child("plugins"), config.Profiles[i].Plugins, all)...)
	}
	return errs
}

// meaningful reports whether an error concerns the file itself, rather than rejected fields or fields that flags may
// override.
func meaningful(err *field.Error, refused []string) bool {
	// The flags --leader-elect… override the file, and are unknown here.
	if isWithin(err.Field, "leaderElection") {
		return false
	}
	for _, path := range refused {
		if isWithin(err.Field, path) {
			return false
		}
		// For example, a rule whose pattern has a wrong type appears to have nothing to match.
		if err.Type == field.ErrorTypeRequired && isWithin(path, err.Field) {
			return false
		}
	}
	return true
}

// isWithin reports whether a path equals another one, or is the path of a field inside it.
func isWithin(path, above string) bool {
	return path == above || strings.HasPrefix(path, above+".") || strings.HasPrefix(path, above+"[")
}

// wrongKind returns errors unless this scheduler knows the kind and version of the configuration.
func wrongKind(kind metav1.TypeMeta) []error {
	var versions []string
	for _, gv := range scheme.Scheme.PrioritizedVersionsForGroup(schedulerconfig.GroupName) {
		if scheme.Scheme.Recognizes(gv.WithKind(configurationKind)) {
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

// parse returns a file, YAML or JSON, as JSON, and an error for each duplicate key. It fails if the file cannot be
// parsed.
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
		// The first line is a heading; each further line is an error.
		for _, line := range strings.Split(err.Error(), "\n")[1:] {
			duplicates = append(duplicates, fmt.Errorf("%s", strings.TrimSpace(line)))
		}
	}
	return document, duplicates, nil
}

// numberWithoutJSON matches infinity or NaN as a whole YAML value, because JSON cannot express these numbers. They are
// replaced by text, so that the error for such a value has the path of its field.
var numberWithoutJSON = regexp.MustCompile(`(?m)([:,\[-][ \t]*)([-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))([ \t]*(?:[,}\]#\r]|$))`)

// encode encodes a value that was decoded from JSON, so it cannot fail.
func encode(value interface{}) []byte {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return encoded
}
