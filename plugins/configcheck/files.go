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

// documentNotes returns a note if the file has several documents: only the first is read.
func (s Start) documentNotes() []string {
	data, err := os.ReadFile(s.ConfigFile)
	if err != nil || utilyaml.IsJSONBuffer(data) || countDocuments(data) < 2 {
		return nil
	}
	return []string{"note: the file has more than one YAML document: only the first is read, up to the line ---"}
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
