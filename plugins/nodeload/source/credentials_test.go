// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io/ioutil"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

// authority is one that issues certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, key, armoured("CERTIFICATE", der)}
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

// issue makes a certificate for 127.0.0.1 and a name.
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

// secured is a server with a certificate of an authority.
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

func TestServersAreVerifiedUnlessSwitchedOff(t *testing.T) {
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
			// A token, or none, has no influence on verification.
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

func TestCARotation(t *testing.T) {
	before, after := newAuthority(t, "before"), newAuthority(t, "after")
	s := secured(t, before, "prometheus", healthy("before"), nil)
	// As the kubelet does it: a link to a folder that is swapped.
	volume := t.TempDir()
	for folder, content := range map[string]string{"1": before.pem, "2": after.pem} {
		if err := os.Mkdir(filepath.Join(volume, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(volume, folder, "ca.crt"), content)
	}
	swap := func(folder string) {
		if err := os.Symlink(folder, filepath.Join(volume, "..tmp")); err != nil {
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
	// The connection to the first is still open, but what it was opened with is trusted no more.
	mustAnswer(t, c, "after")
}

func TestClientCertificateRotation(t *testing.T) {
	ca, clients := newAuthority(t, "ca"), newAuthority(t, "clients")
	pool := x509.NewCertPool()
	pool.AddCert(clients.certificate)
	names := make(chan string, 10)
	s := secured(t, ca, "prometheus", func(w http.ResponseWriter, r *http.Request) {
		names <- r.TLS.PeerCertificates[0].Subject.CommonName
		healthy("a")(w, r)
	}, pool)
	certFile, keyFile := written(t, "tls.crt", ""), written(t, "tls.key", "")
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
	rotate := func(name string) (cert, key string) {
		cert, key = clients.issue(t, name)
		write(t, certFile, cert)
		return cert, key
	}
	_, key := rotate("first")
	write(t, keyFile, key)
	shows("first", 0)
	// The certificate is there and its key is not yet: the old pair goes on.
	_, key = rotate("second")
	shows("first", 1)
	write(t, keyFile, key)
	shows("second", 0)
}

// tokens answers who has the token.
func tokens(token string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		healthy("a")(w, r)
	}
}

func TestTokenRotation(t *testing.T) {
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
	if text := mustFail(t, c); strings.Contains(text, "first-token") {
		t.Errorf("the token is in %q", text)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests with the same token, want 1", n)
	}
	write(t, path, "second-token")
	mustAnswer(t, c, "a")

	// The file is lost, empty, or broken: what it held is sent on, and that is said.
	for _, content := range []string{"", "two\nlines"} {
		write(t, path, content)
		if result := mustAnswer(t, c, "a"); len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], path) {
			t.Errorf("warnings: %q", result.Warnings)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if result := mustAnswer(t, c, "a"); len(result.Warnings) != 1 {
		t.Errorf("warnings: %q", result.Warnings)
	}
}

func TestATokenThatChangesWhileItIsSentIsSentAgainOnce(t *testing.T) {
	path := written(t, "token", "first-token")
	s := serve(t, nil)
	s.becomes(func(w http.ResponseWriter, r *http.Request) {
		write(t, path, "second-token")
		tokens("second-token")(w, r)
	})
	given := prometheus(s.URL)
	given.BearerTokenFile = path
	c := client(t, given)
	if result := mustAnswer(t, c, "a"); result.Requests != 2 {
		t.Errorf("%d requests", result.Requests)
	}
	s.becomes(func(w http.ResponseWriter, r *http.Request) {
		write(t, path, r.Header.Get("Authorization")[len("Bearer "):]+"x")
		w.WriteHeader(http.StatusUnauthorized)
	})
	mustFail(t, c)
	if n := len(s.requests()); n != 2 {
		t.Errorf("%d requests: one, and one with the newer token", n)
	}
}

func TestHeaders(t *testing.T) {
	path := written(t, "key", "the-first-key\n")
	s := serve(t, healthy("a"))
	given := prometheus(s.URL)
	given.Headers = []config.NodeLoadHeader{{Name: "x-scope-orgid", Value: "tenant"}, {Name: "X-Api-Key", ValueFile: path}}
	c := client(t, given)
	mustAnswer(t, c, "a")
	write(t, path, "the-second-key")
	mustAnswer(t, c, "a")
	for i, key := range []string{"the-first-key", "the-second-key"} {
		if header := s.requests()[i].header; header.Get("X-Scope-OrgID") != "tenant" || header.Get("X-Api-Key") != key {
			t.Errorf("the headers of request %d: %v", i+1, header)
		}
	}
}

func TestSecretsAreInNoMessage(t *testing.T) {
	secrets := []string{"the-secret-token", "the-secret-key", "the-password", "the-query"}
	// A server that repeats whatever it was sent.
	s := serve(t, nil)
	echo := func(status int, form string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			said := strings.Join([]string{r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.URL.RawQuery, "the-password"}, " ")
			w.Header().Set("Location", "/login/"+said)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(strings.ReplaceAll(form, "SAID", said)))
		}
	}
	address, _ := url.Parse(s.URL)
	address.User, address.RawQuery = url.UserPassword("user", "the-password"), "key=the-query"
	given := prometheus(address.String())
	given.Headers = []config.NodeLoadHeader{{Name: "X-Api-Key", Value: "the-secret-key"}}
	withToken := given
	withToken.BearerTokenFile = written(t, "token", "the-secret-token")
	for _, given := range []config.NodeLoadPrometheus{given, withToken} {
		c := client(t, given)
		for name, do := range map[string]http.HandlerFunc{
			"400":      echo(400, `{"status":"error","errorType":"bad_data","error":"SAID"}`),
			"401":      echo(401, "SAID"),
			"422":      echo(422, `{"status":"error","errorType":"SAID","error":"SAID"}`),
			"500":      echo(500, `{"status":"error","errorType":"internal","error":"SAID"}`),
			"200":      echo(200, `{"status":"error","errorType":"execution","error":"SAID"}`),
			"garbage":  echo(200, `SAID`),
			"redirect": echo(302, ``),
		} {
			s.becomes(do)
			_, result, err := ask(c, cpu, Query{Name: "memory", Value: "m"})
			if err == nil {
				t.Fatal("no error")
			}
			said := err.Error()
			for _, failure := range result.Failed {
				said += failure.Error()
			}
			for _, secret := range secrets {
				if strings.Contains(said, secret) {
					t.Errorf("%s: %s is in %q", name, secret, said)
				}
			}
		}
		s.becomes(healthy("a"))
		result := mustAnswer(t, c, "a")
		if result.Endpoint != s.URL {
			t.Errorf("the endpoint is given as %s", result.Endpoint)
		}
	}
	if header := s.requests()[0].header.Get("Authorization"); header != "Bearer the-secret-token" {
		t.Errorf("a token counts more than a password: %s", header)
	}
}

// A secret that is cut in two, or sent in another form, is still one.
func TestSecretsAreInNoMessageNotEvenAPartOfThem(t *testing.T) {
	const token, password = "the-secret-token-of-some-length", "the-password"
	login := base64.StdEncoding.EncodeToString([]byte("me:" + password))
	s := serve(t, nil)
	withToken, withLogin := prometheus(s.URL), prometheus(s.URL)
	withToken.BearerTokenFile = written(t, "token", token)
	withLogin.Headers = []config.NodeLoadHeader{{Name: "authorization", ValueFile: written(t, "login", "Basic "+login)}}
	for said, given := range map[string]config.NodeLoadPrometheus{token: withToken, login: withLogin, password: withLogin} {
		c := client(t, given)
		for pad := longestText - len(said) - 70; pad < longestText; pad += 5 {
			text := strings.Repeat("-", pad) + said
			for name, do := range map[string]http.HandlerFunc{
				"bad data":         answers(400, `{"status":"error","errorType":"bad_data","error":"`+text+`"}`),
				"its type":         answers(422, `{"status":"error","errorType":"`+text+`","error":""}`),
				"internal":         answers(500, `{"status":"error","errorType":"internal","error":"`+text+`"}`),
				"an error":         answers(200, `{"status":"error","errorType":"execution","error":"`+text+`"}`),
				"a page":           answers(200, text),
				"JSON of its own":  answers(200, `{"status":`+said+`}`),
				"a type of result": answers(200, `{"status":"success","data":{"resultType":"`+text+`"}}`),
				"a value":          answers(200, vector(series("a", "0v", text))),
				"a warning":        answers(200, `{"status":"success","warnings":["`+text+`"],"data":{"resultType":"vector","result":[]}}`),
				"a redirect": func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Location", "/"+text)
					w.WriteHeader(http.StatusFound)
				},
			} {
				s.becomes(do)
				_, result, err := ask(c, cpu)
				message := fmt.Sprint(err, result.Failed, result.Warnings)
				if name != "a warning" && err == nil || strings.Contains(message, said[:8]) {
					t.Fatalf("%s, behind %d characters: %s", name, pad, message)
				}
			}
		}
	}
}

// Reading what is no regular file may never end: a named pipe waits for a writer.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	for _, path := range []string{os.DevNull, t.TempDir()} {
		given := prometheus("http://127.0.0.1:1")
		given.BearerTokenFile = path
		if text := mustFail(t, client(t, given)); !strings.Contains(text, "not a regular file") {
			t.Error(text)
		}
	}
}
