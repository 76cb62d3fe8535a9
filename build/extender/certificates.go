// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"crypto/tls"
	"fmt"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// tlsConfig returns the configuration to serve TLS with. Until the context ends, replaced files are read again; a new
// file that is invalid is logged, and the last valid one stays in use.
func (o *Options) tlsConfig(ctx context.Context) (*tls.Config, error) {
	base := &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		// A resumed session would keep the authorities of its start.
		SessionTicketsDisabled: true,
	}
	serving, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving", o.CertificateFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot serve with %s and %s: %w; next: give a PEM certificate and its PEM key "+
			"with --tls-cert-file and --tls-private-key-file", o.CertificateFile, o.KeyFile, err)
	}
	controllers := []dynamiccertificates.ControllerRunner{serving}
	var authorities dynamiccertificates.CAContentProvider
	if o.ClientCAFile != "" {
		base.ClientAuth = tls.RequireAndVerifyClientCert
		clients, err := dynamiccertificates.NewDynamicCAContentFromFile("clients", o.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("cannot check clients with %s: %w; "+
				"next: give a file of PEM certificates with --client-ca-file", o.ClientCAFile, err)
		}
		authorities, controllers = clients, append(controllers, clients)
	}
	current := dynamiccertificates.NewDynamicServingCertificateController(base, authorities, serving, nil, nil)
	if err := current.RunOnce(); err != nil {
		return nil, fmt.Errorf("cannot serve TLS: %w; next: check the files of --tls-cert-file and --client-ca-file", err)
	}
	serving.AddListener(current)
	if authorities != nil {
		authorities.AddListener(current)
	}
	for _, controller := range append(controllers, current) {
		go controller.Run(1, ctx.Done())
	}
	return &tls.Config{
		MinVersion: base.MinVersion, NextProtos: base.NextProtos, GetConfigForClient: current.GetConfigForClient,
	}, nil
}
