// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"fmt"
	"net"
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// credentialNotes are about credentials that everybody on the way can read. They name no endpoint, which may hold
// secrets.
func credentialNotes(path *field.Path, p *schedulerconfig.KubeSchedulerProfile) []string {
	var notes []string
	for i, pluginConfig := range p.PluginConfig {
		args, ok := pluginConfig.Args.(*config.NodeLoadArgs)
		if !ok || !sendsCredentials(&args.Prometheus) {
			continue
		}
		for j, endpoint := range args.Prometheus.Endpoints {
			if isOpen(endpoint) {
				notes = append(notes, fmt.Sprintf("note: %s: begins with http://, so what is read from bearerTokenFile and valueFile is sent there without encryption",
					path.Child("pluginConfig").Index(i).Child("args", "prometheus", "endpoints").Index(j)))
			}
		}
	}
	return notes
}

// sendsCredentials says whether there is a token or a header that is kept in a file.
func sendsCredentials(prometheus *config.NodeLoadPrometheus) bool {
	for _, header := range prometheus.Headers {
		if header.ValueFile != "" {
			return true
		}
	}
	return prometheus.BearerTokenFile != ""
}

// isOpen says whether an endpoint is asked without encryption, and not on this machine, such as a proxy beside the
// scheduler.
func isOpen(endpoint string) bool {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Scheme != "http" {
		return false
	}
	host := parsed.Hostname()
	return host != "localhost" && !net.ParseIP(host).IsLoopback()
}
