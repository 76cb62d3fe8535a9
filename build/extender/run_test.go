// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	componentbaseconfig "k8s.io/component-base/config"
)

func TestOptionsThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		// want is a part of the error; empty is none.
		want string
	}{
		"loopback":                          {func(o *Options) {}, ""},
		"loopback of IPv6":                  {func(o *Options) { o.Listen = "[::1]:8888" }, ""},
		"loopback's other addresses":        {func(o *Options) { o.Listen = "127.1.2.3:8888" }, ""},
		"no port":                           {func(o *Options) { o.Listen = "127.0.0.1" }, "give HOST:PORT"},
		"everywhere":                        {func(o *Options) { o.Listen = ":8888" }, "bind pods with --bind"},
		"everywhere, by name":               {func(o *Options) { o.Listen = "0.0.0.0:8888" }, "bind pods with --bind"},
		"a name, which could lead anywhere": {func(o *Options) { o.Listen = "localhost:8888" }, "bind pods with --bind"},
		"another address":                   {func(o *Options) { o.Listen = "192.0.2.1:8888" }, "bind pods with --bind"},
		"another address, TLS alone": {func(o *Options) {
			o.Listen, o.CertificateFile, o.KeyFile = "192.0.2.1:8888", "crt", "key"
		}, "bind pods with --bind"},
		"another address, TLS and authorities": {func(o *Options) {
			o.Listen, o.CertificateFile, o.KeyFile, o.ClientCAFile = "192.0.2.1:8888", "crt", "key", "ca"
		}, ""},
		"another address, said by name":       {func(o *Options) { o.Listen, o.AllowAnyone = "192.0.2.1:8888", true }, ""},
		"a certificate without its key":       {func(o *Options) { o.CertificateFile = "crt" }, "give both --tls-cert-file and"},
		"a key without its certificate":       {func(o *Options) { o.KeyFile = "key" }, "give both --tls-cert-file and"},
		"authorities without TLS":             {func(o *Options) { o.ClientCAFile = "ca" }, "--client-ca-file needs TLS"},
		"authorities without TLS, everywhere": {func(o *Options) { o.Listen, o.ClientCAFile, o.AllowAnyone = ":8888", "ca", true }, "--client-ca-file needs TLS"},
		"no time":                             {func(o *Options) { o.RequestTimeout = 0 }, "--request-timeout"},
		"less than no time":                   {func(o *Options) { o.RequestTimeout = -time.Second }, "--request-timeout"},
		"no bytes":                            {func(o *Options) { o.MaxBodyBytes = 0 }, "--max-body-bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{Listen: "127.0.0.1:8888", Limits: generous}
			test.change(&options)
			err := options.check()
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "next: ") {
				t.Errorf("got %v, want %q and what to do next", err, test.want)
			}
		})
	}
}

func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	return writeFile(t, "kubeconfig", "{apiVersion: v1, kind: Config, current-context: x, "+
		"contexts: [{name: x, context: {cluster: x}}], clusters: [{name: x, cluster: {server: '"+server+"'}}]}")
}

func TestRunSaysWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	config := writeFile(t, "config.yaml", byDiskType)
	kubeconfig := writeKubeconfig(t, "http://127.0.0.1:1")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"no configuration":      {Options{Config: "/nonexistent", Listen: "127.0.0.1:0"}, "cannot read the configuration"},
		"no kubeconfig":         {Options{Config: config, Kubeconfig: "/nonexistent", Listen: "127.0.0.1:0"}, "--kubeconfig"},
		"none and not in a pod": {Options{Config: config, Listen: "127.0.0.1:0"}, "--kubeconfig"},
		"port taken":            {Options{Config: config, Kubeconfig: kubeconfig, Listen: taken.Addr().String()}, "cannot listen on"},
		"not safe":              {Options{Config: config, Kubeconfig: kubeconfig, Listen: ":0"}, "bind pods with --bind"},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Limits, test.options.Out = generous, io.Discard
			err := Run(t.Context(), test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "; next: ") {
				t.Errorf("got %v, want %q and what to do next", err, test.want)
			}
		})
	}
}

func TestClientConfigIsTheConfigurations(t *testing.T) {
	kubeconfig := writeKubeconfig(t, "https://given")
	profile := &Profile{connection: componentbaseconfig.ClientConnectionConfiguration{
		Kubeconfig: kubeconfig, QPS: 7, Burst: 9, ContentType: "application/vnd.kubernetes.protobuf",
	}}
	options := Options{}
	config, err := options.clientConfig(profile)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://given" || config.QPS != 7 || config.Burst != 9 ||
		config.ContentType != "application/vnd.kubernetes.protobuf" {
		t.Errorf("got %+v", config)
	}
	profile.connection.Kubeconfig, options.Kubeconfig = "/nonexistent", kubeconfig
	if _, err := options.clientConfig(profile); err != nil {
		t.Errorf("the flag should count more than the file: %v", err)
	}
}
