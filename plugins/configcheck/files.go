// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"sigs.k8s.io/yaml"
)

// leaveOutMissingFiles changes an extender so that it can be made without those of its files that are not on this machine,
// and are read: with data of its own, no file is. It returns what it left out, by the name of the field: a configuration
// may be checked on another machine than it is for.
func leaveOutMissingFiles(extender *schedulerconfig.Extender) []string {
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
	// With both, a start refuses them before it reads the file.
	if !tls.Insecure && isMissing("caFile", tls.CAFile, tls.CAData) {
		tls.CAFile, tls.Insecure = "", true
	}
	certificate, key := isMissing("certFile", tls.CertFile, tls.CertData), isMissing("keyFile", tls.KeyFile, tls.KeyData)
	if certificate || key {
		// They can only be read together.
		tls.CertFile, tls.CertData, tls.KeyFile, tls.KeyData = "", nil, "", nil
	}
	return missing
}

// documentNotes are about files with several documents, of which only the first is read.
func (s Start) documentNotes() []string {
	data, err := os.ReadFile(s.ConfigFile)
	if err != nil || utilyaml.IsJSONBuffer(data) || countDocuments(data) < 2 {
		return nil
	}
	return []string{"note: the file has more than one YAML document: only the first is read, up to the line ---"}
}

// countDocuments counts the documents of a YAML file that are more than comments.
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
