// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"

	"kube-scheduler-fork/build/localcluster/supervisor"
)

// certificateLife is how long the certificates of a run are valid: longer than anybody leaves one running.
const certificateLife = 30 * 24 * time.Hour

// authority signs the certificates of one run. Everything that listens has one and asks for one, because loopback is
// shared with every user of the machine.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	// pem is the certificate, as the programs read it.
	pem []byte
}

// keyPair is a certificate with its private key, both PEM.
type keyPair struct {
	certificate, key []byte
}

func newAuthority() (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := certificateTemplate(pkix.Name{CommonName: "local control plane"})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key, pem: encodeCertificate(der)}, nil
}

// server gives a key pair for a program that listens on loopback.
func (a *authority) server(name string) (keyPair, error) {
	template, err := certificateTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return keyPair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.ParseIP(supervisor.Loopback)}
	return a.sign(template)
}

// client gives a key pair that the API server knows as a user in some groups.
func (a *authority) client(user string, groups ...string) (keyPair, error) {
	template, err := certificateTemplate(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return keyPair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// clientConfig is how a client talks TLS that trusts this authority alone, and is known as a user in some groups.
func (a *authority) clientConfig(user string, groups ...string) (*tls.Config, error) {
	pair, err := a.client(user, groups...)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.certificate, pair.key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}}, nil
}

func (a *authority) sign(template *x509.Certificate) (keyPair, error) {
	key, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return keyPair{}, err
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{certificate: encodeCertificate(der), key: encoded}, nil
}

func certificateTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		// The clock of a machine without one of its own may be set back a little while it runs.
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(certificateLife),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}, nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// encodeKey writes a key in the form that every release of Kubernetes reads, for service accounts too.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
