// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"bufio"
	"bytes"
	"io"
	"os"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"sigs.k8s.io/yaml"
)

// missingFile is a file that an extender names and that is not on this machine: a configuration may be checked on
// another one than it is for.
type missingFile struct {
	field string
	err   error
}

// missingFiles returns the files of an extender that do not exist, and are read: with data of its own, no file is.
func missingFiles(extender schedulerconfig.Extender) []missingFile {
	tls := extender.TLSConfig
	if tls == nil {
		return nil
	}
	var missing []missingFile
	for _, file := range []struct {
		field, path string
		data        []byte
	}{
		{"caFile", tls.CAFile, tls.CAData},
		{"certFile", tls.CertFile, tls.CertData},
		{"keyFile", tls.KeyFile, tls.KeyData},
	} {
		if file.path == "" || len(file.data) > 0 {
			continue
		}
		if _, err := os.Stat(file.path); os.IsNotExist(err) {
			missing = append(missing, missingFile{file.field, err})
		}
	}
	return missing
}

// leaveOutMissingFiles changes an extender so that it can be made without the files that do not exist, and the others
// are read. A certificate and its key can only be read together.
func leaveOutMissingFiles(extender *schedulerconfig.Extender) {
	for _, file := range missingFiles(*extender) {
		tls := extender.TLSConfig
		if file.field == "caFile" {
			tls.CAFile, tls.Insecure = "", true
			continue
		}
		tls.CertFile, tls.CertData, tls.KeyFile, tls.KeyData = "", nil, "", nil
	}
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
