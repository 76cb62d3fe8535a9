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

// certificateLife is how long the certificates of a run are valid: longer than a run is kept.
const certificateLife = 30 * 24 * time.Hour

// Authority signs the certificates of one run. Everything that listens has one and asks for one, because loopback is
// shared with every user of the machine.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// KeyPair is a certificate with its private key, both PEM.
type KeyPair struct {
	Certificate, Key []byte
}

// NewAuthority makes an authority of a name.
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

// PEM is the authority's certificate, as programs read it.
func (a *Authority) PEM() []byte {
	// An error would say that there is no certificate.
	content, _ := cert.EncodeCertificates(a.certificate)
	return content
}

// Server gives a key pair for a program that listens on loopback, and that is itself a client of others.
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

// Client gives a key pair that the API server knows as a user in some groups.
func (a *Authority) Client(user string, groups ...string) (KeyPair, error) {
	template, err := certificateTemplate(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return KeyPair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.pair(template)
}

// ClientConfig is how a client talks TLS that trusts this authority alone, and is known as a user in some groups.
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

// sign makes a key and a certificate for it. Without a key of its own yet, the authority's is signed with the new one.
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
		// The clock of a machine without one of its own may be set back a little while it runs.
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(certificateLife),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}, nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }
