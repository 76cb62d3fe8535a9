// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kube-scheduler/config/v1beta2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"sigs.k8s.io/yaml"
)

// dropMissingFiles removes from an extender the files that do not exist on this machine, because a configuration may be
// checked on another machine. It keeps files that are not read because the extender has inline data instead. It returns
// a message for each removed file.
func dropMissingFiles(extender *schedulerconfig.Extender) []string {
	tls := extender.TLSConfig
	if tls == nil {
		return nil
	}
	var missing []string
	isMissing := func(field, path string, data []byte) bool {
		_, err := os.Stat(path)
		if path == "" || len(data) > 0 || !os.IsNotExist(err) {
			return false
		}
		missing = append(missing, fmt.Sprintf("%s is not to be found on this machine: %v", field, err))
		return true
	}
	// At start, a CA together with insecure is rejected before the file is read.
	if !tls.Insecure && isMissing("caFile", tls.CAFile, tls.CAData) {
		tls.CAFile, tls.Insecure = "", true
	}
	certificate, key := isMissing("certFile", tls.CertFile, tls.CertData), isMissing("keyFile", tls.KeyFile, tls.KeyData)
	if certificate || key {
		// The certificate and the key can only be read together.
		tls.CertFile, tls.CertData, tls.KeyFile, tls.KeyData = "", nil, "", nil
	}
	return missing
}

// fileNotes returns notes about parts of the file that are not read: further documents, and multiPoint in v1beta2.
func (s Start) fileNotes() []string {
	data, err := os.ReadFile(s.ConfigFile)
	if err != nil {
		return nil
	}
	var notes []string
	if !utilyaml.IsJSONBuffer(data) && countDocuments(data) > 1 {
		notes = append(notes, "note: the file has more than one YAML document: only the first is read, up to the line ---")
	}
	var given v1beta2.KubeSchedulerConfiguration
	if s.Config.APIVersion != v1beta2.SchemeGroupVersion.String() || yaml.Unmarshal(data, &given) != nil {
		return notes
	}
	for i, p := range given.Profiles {
		if p.Plugins != nil && len(p.Plugins.MultiPoint.Enabled)+len(p.Plugins.MultiPoint.Disabled) > 0 {
			notes = append(notes, fmt.Sprintf("note: %s: v1beta2 ignores this field; list the extension points, or convert the file to v1beta3",
				field.NewPath("profiles").Index(i).Child("plugins", "multiPoint")))
		}
	}
	return notes
}

// countDocuments returns the number of documents in a YAML file, without those that have only comments.
func countDocuments(data []byte) int {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 0; ; {
		document, err := documents.Read()
		if err != nil && err != io.EOF || len(document) == 0 {
			return n
		}
		if content, err := yaml.YAMLToJSON(document); err != nil || string(content) != "null" {
			n++
		}
	}
}
