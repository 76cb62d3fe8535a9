// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"

	"k8s.io/klog/v2"
)

// certificates are the files with which an extender serves TLS. They are read anew at every handshake, of which there are
// few, since a scheduler keeps its connections: whoever renews a certificate has only to replace the files.
type certificates struct {
	certificateFile, keyFile string
	// clientCAFile holds the authorities of which a client must have a certificate; empty asks clients for none.
	clientCAFile string

	mutex sync.Mutex
	last  *tls.Config
}

// configuration is what TLS is served with; an error if the files cannot be used.
func (c *certificates) configuration() (*tls.Config, error) {
	if err := c.read(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         c.last.NextProtos,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.latest(), nil },
	}, nil
}

// latest gives what the files hold, or what they held before if they cannot be used, as in the middle of being replaced.
func (c *certificates) latest() *tls.Config {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.read(); err != nil {
		klog.ErrorS(err, "Going on with the certificates that were read before")
	}
	return c.last
}

func (c *certificates) read() error {
	pair, err := tls.LoadX509KeyPair(c.certificateFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("cannot serve with %s and %s: %w; next: give a certificate and its key, both PEM, "+
			"with --tls-cert-file and --tls-private-key-file", c.certificateFile, c.keyFile, err)
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{pair},
		// A session that goes on would go on with the authorities of its beginning.
		SessionTicketsDisabled: true,
	}
	if c.clientCAFile != "" {
		config.ClientAuth = tls.RequireAndVerifyClientCert
		if config.ClientCAs, err = readAuthorities(c.clientCAFile); err != nil {
			return fmt.Errorf("cannot check clients with %s: %w; next: give a file of PEM certificates with --client-ca-file",
				c.clientCAFile, err)
		}
	}
	c.last = config
	return nil
}

func readAuthorities(file string) (*x509.CertPool, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, errors.New("there is no certificate in it")
	}
	return pool, nil
}
