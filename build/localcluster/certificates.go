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
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"kube-scheduler-fork/build/localcluster/supervisor"
)

// certificateLife is longer than any run.
const certificateLife = 30 * 24 * time.Hour

// Authority signs the certificates of one run. Every server has one and requires one of its clients, because all users
// of the machine share loopback.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// KeyPair is a certificate with its private key, both PEM.
type KeyPair struct {
	Certificate, Key []byte
}

// NewAuthority creates an authority.
func NewAuthority(name string) (*Authority, error) {
	template, err := certificateTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageCertSign
	a := &Authority{certificate: template}
	a.certificate, a.key, err = a.sign(template)
	return a, err
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() []byte {
	// Encoding fails only without a certificate.
	content, _ := cert.EncodeCertificates(a.certificate)
	return content
}

// Server returns a key pair for a program that listens on loopback and is also a client of others.
func (a *Authority) Server(name string) (KeyPair, error) {
	template, err := certificateTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return KeyPair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.ParseIP(supervisor.Loopback)}
	return a.pair(template)
}

// Client returns a key pair that identifies a user and its groups to the API server.
func (a *Authority) Client(user string, groups ...string) (KeyPair, error) {
	template, err := certificateTemplate(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return KeyPair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.pair(template)
}

// ClientConfig returns the TLS configuration of a client that trusts only this authority, as a user with groups.
func (a *Authority) ClientConfig(user string, groups ...string) (*tls.Config, error) {
	pair, err := a.Client(user, groups...)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}}, nil
}

func (a *Authority) pair(template *x509.Certificate) (KeyPair, error) {
	certificate, key, err := a.sign(template)
	if err != nil {
		return KeyPair{}, err
	}
	var pair KeyPair
	if pair.Certificate, err = cert.EncodeCertificates(certificate); err != nil {
		return KeyPair{}, err
	}
	pair.Key, err = keyutil.MarshalPrivateKeyToPEM(key)
	return pair, err
}

// sign creates a key and its certificate, which the authority signs; its own is signed with the new key.
func (a *Authority) sign(template *x509.Certificate) (*x509.Certificate, crypto.Signer, error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return certificate, key, err
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
		// The clock of a virtual machine may be set back a little.
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(certificateLife),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}, nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }
