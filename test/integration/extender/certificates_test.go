// SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// writeCertificates writes what the page on extenders has an operator make: an authority of its own, ca.crt, and of it a pair
// for the extender, server, and one for the scheduler, scheduler.
func writeCertificates(t *testing.T, folder string) {
	t.Helper()
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	write := func(name, kind string, der []byte) {
		content := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sign := func(template, parent *x509.Certificate, key *ecdsa.PrivateKey, signer crypto.Signer) []byte {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	authorityKey := newKey()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "scheduler-extender-ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	write("ca.crt", "CERTIFICATE", sign(authority, authority, authorityKey, authorityKey))
	for i, name := range []string{"server", "scheduler"} {
		key := newKey()
		usage := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}[i]
		write(name+".crt", "CERTIFICATE", sign(&x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 2)), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		}, authority, key, authorityKey))
		der, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		write(name+".key", "EC PRIVATE KEY", der)
	}
}

// newTransport trusts the authority in a folder, and shows the scheduler's certificate or none.
func newTransport(folder string, certificate bool) (*http.Transport, error) {
	content, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(content) {
		return nil, errors.New("ca.crt holds no certificate")
	}
	if certificate {
		pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "scheduler.crt"), filepath.Join(folder, "scheduler.key"))
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, nil
}
