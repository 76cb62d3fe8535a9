// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io/ioutil"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// authority is a certificate authority.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key := newKey(t)
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, key, armoured("CERTIFICATE", certificate.Raw)}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func armoured(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// issue issues a certificate for 127.0.0.1 and a name.
func (a authority) issue(t *testing.T, name string) (cert, key string) {
	t.Helper()
	own := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, own.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	return armoured("CERTIFICATE", der), armoured("EC PRIVATE KEY", private)
}

func pair(t *testing.T, cert, key string) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func written(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, content)
	return path
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := ioutil.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// secured returns a server with a certificate from an authority.
func secured(t *testing.T, from authority, name string, do http.HandlerFunc, clients *x509.CertPool) *server {
	t.Helper()
	s := unstarted(t, do)
	cert, key := from.issue(t, name)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair(t, cert, key)}}
	if clients != nil {
		s.TLS.ClientAuth, s.TLS.ClientCAs = tls.RequireAndVerifyClientCert, clients
	}
	s.StartTLS()
	return s
}

func TestAskVerifiesServers(t *testing.T) {
	ca := newAuthority(t, "ca")
	s := secured(t, ca, "prometheus.monitoring.svc", healthy("a"), nil)
	caFile, otherFile := written(t, "ca", ca.pem), written(t, "ca", newAuthority(t, "other").pem)
	for name, test := range map[string]struct {
		tls  config.NodeLoadTLS
		fine bool
	}{
		"the system's authorities":              {config.NodeLoadTLS{}, false},
		"another authority":                     {config.NodeLoadTLS{CAFile: otherFile}, false},
		"its authority":                         {config.NodeLoadTLS{CAFile: caFile}, true},
		"its authority and name":                {config.NodeLoadTLS{CAFile: caFile, ServerName: "prometheus.monitoring.svc"}, true},
		"its authority and another name":        {config.NodeLoadTLS{CAFile: caFile, ServerName: "thanos"}, false},
		"no verification, as was asked by name": {config.NodeLoadTLS{InsecureSkipVerify: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			given := prometheus(s.URL)
			given.TLS = test.tls
			// A token does not affect verification.
			for _, token := range []string{"", written(t, "token", "the-secret-token")} {
				given.BearerTokenFile = token
				c := client(t, given)
				if test.fine {
					mustAnswer(t, c, "a")
				} else if text := mustFail(t, c); !strings.Contains(text, "certificate") {
					t.Error(text)
				}
			}
		})
	}
}

func TestAskCARotation(t *testing.T) {
	before, after := newAuthority(t, "before"), newAuthority(t, "after")
	s := secured(t, before, "prometheus", healthy("before"), nil)
	// As kubelet updates a volume: a link to a directory is swapped.
	volume := t.TempDir()
	for directory, content := range map[string]string{"1": before.pem, "2": after.pem} {
		if err := os.Mkdir(filepath.Join(volume, directory), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(volume, directory, "ca.crt"), content)
	}
	swap := func(directory string) {
		if err := os.Symlink(directory, filepath.Join(volume, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(volume, "..tmp"), filepath.Join(volume, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	swap("1")
	renewed := secured(t, after, "prometheus", healthy("after"), nil)
	given := prometheus(s.URL, renewed.URL)
	given.TLS.CAFile = filepath.Join(volume, "..data", "ca.crt")
	c := client(t, given)
	mustAnswer(t, c, "before")
	swap("2")
	// The connection to the first server is still open, but its authority is no longer trusted.
	mustAnswer(t, c, "after")
}

func TestAskClientCertificateRotation(t *testing.T) {
	ca, clients := newAuthority(t, "ca"), newAuthority(t, "clients")
	pool := x509.NewCertPool()
	pool.AddCert(clients.certificate)
	names := make(chan string, 10)
	s := secured(t, ca, "prometheus", func(w http.ResponseWriter, r *http.Request) {
		names <- r.TLS.PeerCertificates[0].Subject.CommonName
		healthy("a")(w, r)
	}, pool)
	certFile, keyFile := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	given := prometheus(s.URL)
	given.TLS = config.NodeLoadTLS{CAFile: written(t, "ca", ca.pem), CertFile: certFile, KeyFile: keyFile}
	c := client(t, given)
	if text := mustFail(t, c); !strings.Contains(text, certFile) {
		t.Errorf("the file is not in %q", text)
	}
	shows := func(want string, warnings int) {
		t.Helper()
		if result := mustAnswer(t, c, "a"); len(result.Warnings) != warnings || result.Partial {
			t.Errorf("warnings: %q, partial %v", result.Warnings, result.Partial)
		}
		if name := <-names; name != want {
			t.Errorf("the client shows itself as %s, want %s", name, want)
		}
	}
	cert, key := clients.issue(t, "first")
	write(t, certFile, cert)
	write(t, keyFile, key)
	shows("first", 0)
	// The new certificate exists, its key does not yet: the old pair stays in use.
	cert, key = clients.issue(t, "second")
	write(t, certFile, cert)
	shows("first", 1)
	write(t, keyFile, "")
	shows("first", 1)
	write(t, keyFile, key)
	shows("second", 0)
}

// tokens answers requests that have the token.
func tokens(token string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		healthy("a")(w, r)
	}
}

func TestAskTokenRotation(t *testing.T) {
	s := serve(t, tokens("first-token"))
	path := filepath.Join(t.TempDir(), "token")
	given := prometheus(s.URL)
	given.BearerTokenFile = path
	c := client(t, given)
	if text := mustFail(t, c); !strings.Contains(text, path) || !strings.Contains(text, "bearerTokenFile") {
		t.Errorf("the file is not in %q", text)
	}
	write(t, path, "first-token\n")
	mustAnswer(t, c, "a")
	s.becomes(tokens("second-token"))
	if text := mustFail(t, c); strings.Contains(text, "first-token") || !strings.Contains(text, "HTTP status 401") {
		t.Error(text)
	}
	write(t, path, "second-token")
	mustAnswer(t, c, "a")

	// The file is empty or missing: the last token stays in use, with a warning.
	unreadable := func() {
		t.Helper()
		result := mustAnswer(t, c, "a")
		if len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], path) || result.Partial ||
			result.Requests != 1 {
			t.Errorf("got %+v", result)
		}
	}
	write(t, path, "")
	unreadable()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	unreadable()
}

func TestAskHeaders(t *testing.T) {
	path := written(t, "key", "the-first-key\n")
	s := serve(t, healthy("a"))
	given := prometheus(s.URL)
	given.Headers = []config.NodeLoadHeader{{Name: "x-scope-orgid", Value: "tenant"}, {Name: "X-Api-Key", ValueFile: path}}
	c := client(t, given)
	mustAnswer(t, c, "a")
	write(t, path, "the-second-key")
	mustAnswer(t, c, "a")
	// A file without a valid value is treated as missing: the last value stays in use.
	for _, content := range []string{"", "two\nlines"} {
		write(t, path, content)
		if result := mustAnswer(t, c, "a"); len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], path) {
			t.Errorf("warnings: %q", result.Warnings)
		}
	}
	for i, key := range []string{"the-first-key", "the-second-key", "the-second-key", "the-second-key"} {
		if header := s.requests()[i].header; header.Get("X-Scope-OrgID") != "tenant" || header.Get("X-Api-Key") != key {
			t.Errorf("the headers of request %d: %v", i+1, header)
		}
	}
}

func TestAskHidesSecrets(t *testing.T) {
	const token, key, login = "the-secret-token", "the-secret-key", "bWU6dGhlLXBhc3N3b3Jk"
	s := serve(t, nil)
	// echo is a server that repeats the request's credentials.
	echo := func(status int, form string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			said := r.Header.Get("Authorization") + " " + r.Header.Get("X-Api-Key")
			w.Header().Set("Location", "http://"+r.Host+"1/login/"+said)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(strings.ReplaceAll(form, "SAID", said)))
		}
	}
	withToken, withLogin := prometheus(s.URL), prometheus(s.URL)
	withToken.BearerTokenFile = written(t, "token", token)
	withToken.Headers = []config.NodeLoadHeader{{Name: "x-api-key", Value: key}}
	withLogin.Headers = []config.NodeLoadHeader{{Name: "authorization", ValueFile: written(t, "login", "Basic "+login)}}
	for _, given := range []config.NodeLoadPrometheus{withToken, withLogin} {
		c := client(t, given)
		for name, do := range map[string]http.HandlerFunc{
			"400": echo(400, refused("bad_data", "SAID")),
			// No part of a secret remains if the text is cut within it.
			"400 of some length": echo(400, refused("bad_data", strings.Repeat("-", longestText-20)+"SAID")),
			"401":                echo(401, "SAID"),
			"404":                echo(404, "SAID"),
			"422":                echo(422, refused("SAID", "SAID")),
			"500":                echo(500, "SAID"),
			"500 in form":        echo(500, refused("internal", "SAID")),
			"garbage":            echo(200, `SAID`),
			"JSON of its own":    echo(200, `{"status":SAID}`),
			"a type of result":   echo(200, `{"status":"success","data":{"resultType":"SAID"}}`),
			"a value":            echo(200, vector(series("a", "0v", "SAID"))),
			"a redirect":         echo(302, ``),
		} {
			s.becomes(do)
			_, err := ask(c, cpu)
			if err == nil {
				t.Fatalf("%s: no error", name)
			}
			for _, secret := range []string{token, key, login} {
				if strings.Contains(err.Error(), secret[:8]) {
					t.Errorf("%s: %s is in %q", name, secret, err)
				}
			}
		}
	}
}
