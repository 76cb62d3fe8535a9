// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"fmt"
	"net"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// credentialNotes returns notes about credentials that are sent without encryption. They do not show the endpoints,
// which may contain secrets.
func credentialNotes(path *field.Path, prometheus *config.NodeLoadPrometheus) []string {
	var notes []string
	for i, endpoint := range prometheus.Endpoints {
		if sendsCredentials(prometheus) && isOpen(endpoint) {
			notes = append(notes, fmt.Sprintf("note: %s: begins with http://, so what is read from bearerTokenFile and valueFile is sent there without encryption",
				path.Child("endpoints").Index(i)))
		}
	}
	return notes
}

// sendsCredentials reports whether a token or a header is read from a file.
func sendsCredentials(prometheus *config.NodeLoadPrometheus) bool {
	for _, header := range prometheus.Headers {
		if header.ValueFile != "" {
			return true
		}
	}
	return prometheus.BearerTokenFile != ""
}

// isOpen reports whether requests to an endpoint leave this machine without encryption. A proxy next to the scheduler
// is on this machine.
func isOpen(endpoint string) bool {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "http" {
		return false
	}
	host := parsed.Hostname()
	return host != "localhost" && !net.ParseIP(host).IsLoopback()
}
