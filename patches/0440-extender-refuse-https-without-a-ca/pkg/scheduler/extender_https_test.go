// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// TestHTTPExtenderNeedsNoCA has an http:// address, for which enableHTTPS has no effect.
func TestHTTPExtenderNeedsNoCA(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "[]") }))
	defer server.Close()
	extenderConfig := config.Extender{URLPrefix: server.URL, EnableHTTPS: true, PrioritizeVerb: "prioritize", Weight: 1}
	invalid := validation.ValidateKubeSchedulerConfiguration(&config.KubeSchedulerConfiguration{Extenders: []config.Extender{extenderConfig}})
	if strings.Contains(invalid.Error(), "extenders[0]") {
		t.Errorf("validation returned %v", invalid)
	}
	extender, err := NewHTTPExtender(&extenderConfig)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := extender.Prioritize(&v1.Pod{}, nil); err != nil {
		t.Errorf("a call returned %v", err)
	}
}

// TestHTTPSExtenderTrust creates extenders for a real HTTPS server, and calls them.
func TestHTTPSExtenderTrust(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "[]") }))
	defer server.Close()
	certificate := func(server *httptest.Server) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	tests := []struct {
		name string
		tls  *config.ExtenderTLSConfig
		// wantInvalid, wantNew and wantCall: validation, NewHTTPExtender or a call returns an error.
		wantInvalid, wantNew, wantCall bool
	}{
		{name: "no tlsConfig", wantInvalid: true, wantNew: true},
		{name: "neither a CA nor insecure", tls: &config.ExtenderTLSConfig{ServerName: "example.com"}, wantInvalid: true, wantNew: true},
		{name: "insecure", tls: &config.ExtenderTLSConfig{Insecure: true}},
		{name: "the server's CA", tls: &config.ExtenderTLSConfig{CAData: certificate(server)}},
		{name: "the server's CA, another name", tls: &config.ExtenderTLSConfig{CAData: certificate(server), ServerName: "example.org"}, wantCall: true},
		{name: "a CA that is not there", tls: &config.ExtenderTLSConfig{CAFile: "/no/such/file"}, wantNew: true},
		{name: "a CA that is none", tls: &config.ExtenderTLSConfig{CAData: []byte("none")}, wantNew: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			extenderConfig := config.Extender{URLPrefix: server.URL, EnableHTTPS: true, TLSConfig: tt.tls, PrioritizeVerb: "prioritize", Weight: 1}
			invalid := validation.ValidateKubeSchedulerConfiguration(&config.KubeSchedulerConfiguration{Extenders: []config.Extender{{}, extenderConfig}})
			if got := strings.Contains(invalid.Error(), "extenders[1].tlsConfig: Required value: HTTPS needs caFile or caData"); got != tt.wantInvalid {
				t.Errorf("validation returned an error: %v, want %v: %v", got, tt.wantInvalid, invalid)
			}
			extender, err := NewHTTPExtender(&extenderConfig)
			if (err != nil) != tt.wantNew {
				t.Fatalf("NewHTTPExtender returned %v, want an error: %v", err, tt.wantNew)
			}
			if err != nil {
				return
			}
			if _, _, err := extender.Prioritize(&v1.Pod{}, nil); (err != nil) != tt.wantCall {
				t.Errorf("a call returned %v, want an error: %v", err, tt.wantCall)
			}
		})
	}
}
