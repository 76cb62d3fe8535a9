// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"io"
	"net"
	"strings"
	"testing"

	componentbaseconfig "k8s.io/component-base/config"
)

func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	return writeFile(t, "kubeconfig", "{apiVersion: v1, kind: Config, current-context: x, "+
		"contexts: [{name: x, context: {cluster: x}}], clusters: [{name: x, cluster: {server: '"+server+"'}}]}")
}

func TestRunErrorsSayWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	config, kubeconfig := writeFile(t, "config.yaml", byDiskType), writeKubeconfig(t, "http://127.0.0.1:1")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	const (
		other  = "192.0.2.1:8888"
		safe   = "cannot read the configuration" // the flags are accepted
		unsafe = "bind pods with --bind"
	)
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"loopback":                      {Options{Listen: "127.0.0.1:8888"}, safe},
		"loopback's other addresses":    {Options{Listen: "127.1.2.3:8888"}, safe},
		"loopback of IPv6":              {Options{Listen: "[::1]:8888"}, safe},
		"no port":                       {Options{Listen: "127.0.0.1"}, "give HOST:PORT"},
		"all addresses":                 {Options{Listen: ":8888"}, unsafe},
		"a name, which has any address": {Options{Listen: "localhost:8888"}, unsafe},
		"another address":               {Options{Listen: other}, unsafe},
		"another address, TLS alone":    {Options{Listen: other, CertificateFile: "crt", KeyFile: "key"}, unsafe},
		"another address, all files":    {Options{Listen: other, CertificateFile: "crt", KeyFile: "key", ClientCAFile: "ca"}, safe},
		"a certificate without its key": {Options{Listen: other, CertificateFile: "crt"}, "give both --tls-cert-file and"},
		"authorities without TLS":       {Options{Listen: other, ClientCAFile: "ca"}, "--client-ca-file needs TLS"},
		"a negative timeout":            {Options{Listen: other, Limits: Limits{RequestTimeout: -long, MaxBodyBytes: 1}}, "--request-timeout or"},
		"no body":                       {Options{Listen: other, Limits: Limits{RequestTimeout: long}}, "--max-body-bytes is not positive"},
		"no kubeconfig":                 {Options{Listen: "127.0.0.1:0", Config: config, Kubeconfig: "/nonexistent"}, "cannot load the connection"},
		"not in a pod":                  {Options{Listen: "127.0.0.1:0", Config: config}, "give an existing file with --kubeconfig"},
		"a port that is taken":          {Options{Listen: taken.Addr().String(), Config: config, Kubeconfig: kubeconfig}, "cannot listen on"},
	} {
		options := test.options
		if options.Out = io.Discard; options.Limits == (Limits{}) {
			options.Limits = generous
		}
		if options.Config == "" {
			options.Config = "/nonexistent"
		}
		if err := Run(t.Context(), options); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "next: ") {
			t.Errorf("%s: got %v, want %q and what to do next", name, err, test.want)
		}
	}
}

func TestClientConfig(t *testing.T) {
	kubeconfig := writeKubeconfig(t, "https://given")
	profile := &Profile{connection: componentbaseconfig.ClientConnectionConfiguration{Kubeconfig: kubeconfig, QPS: 7, Burst: 9}}
	config, err := (&Options{}).clientConfig(profile)
	if err != nil || config.Host != "https://given" || config.QPS != 7 || config.Burst != 9 {
		t.Errorf("got %+v, %v", config, err)
	}
	profile.connection.Kubeconfig = "/nonexistent"
	if _, err := (&Options{Kubeconfig: kubeconfig}).clientConfig(profile); err != nil {
		t.Errorf("the flag does not override the file: %v", err)
	}
}
