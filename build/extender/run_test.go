// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"io"
	"net"
	"strings"
	"testing"

	componentbaseconfig "k8s.io/component-base/config"
)

func TestUnsafeOptionsAreRefused(t *testing.T) {
	const other = "192.0.2.1:8888"
	withTLS := Options{CertificateFile: "crt", KeyFile: "key"}
	for name, test := range map[string]struct {
		listen string
		with   Options
		// want is a part of the error; empty expects none.
		want string
	}{
		"loopback":                         {"127.0.0.1:8888", Options{}, ""},
		"loopback's other addresses":       {"127.1.2.3:8888", Options{}, ""},
		"loopback of IPv6":                 {"[::1]:8888", Options{}, ""},
		"no port":                          {"127.0.0.1", Options{}, "give HOST:PORT"},
		"all addresses":                    {":8888", Options{}, "bind pods with --bind"},
		"a name, which has any address":    {"localhost:8888", Options{}, "bind pods with --bind"},
		"another address":                  {other, Options{}, "bind pods with --bind"},
		"another address, TLS alone":       {other, withTLS, "bind pods with --bind"},
		"another address, all three files": {other, Options{CertificateFile: "crt", KeyFile: "key", ClientCAFile: "ca"}, ""},
		"a certificate without its key":    {"127.0.0.1:8888", Options{CertificateFile: "crt"}, "give both --tls-cert-file and"},
		"authorities without TLS":          {"127.0.0.1:8888", Options{ClientCAFile: "ca"}, "--client-ca-file needs TLS"},
	} {
		options := test.with
		options.Listen, options.Limits = test.listen, generous
		if err := options.check(); (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "next: ")) {
			t.Errorf("%s: got %v, want %q and what to do next", name, err, test.want)
		}
	}
	for _, limits := range []Limits{{RequestTimeout: -long, MaxBodyBytes: 1}, {RequestTimeout: long}} {
		options := Options{Listen: "127.0.0.1:8888", Limits: limits}
		if err := options.check(); err == nil || !strings.Contains(err.Error(), "--request-timeout or --max-body-bytes") {
			t.Errorf("%+v: got %v", limits, err)
		}
	}
}

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
	for want, options := range map[string]Options{
		"cannot read the configuration": {Config: "/nonexistent", Listen: "127.0.0.1:0"},
		"cannot load the connection":    {Config: config, Kubeconfig: "/nonexistent", Listen: "127.0.0.1:0"},
		"give an existing file with --": {Config: config, Listen: "127.0.0.1:0"}, // not in a pod
		"cannot listen on":              {Config: config, Kubeconfig: kubeconfig, Listen: taken.Addr().String()},
		"bind pods with --bind":         {Config: config, Kubeconfig: kubeconfig, Listen: ":0"},
	} {
		options.Limits, options.Out = generous, io.Discard
		if err := Run(t.Context(), options); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "; next: ") {
			t.Errorf("got %v, want %q and what to do next", err, want)
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
