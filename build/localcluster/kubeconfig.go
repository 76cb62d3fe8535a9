// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// authorityFile is the run's trusted certificate, in its directory.
	authorityFile = "ca.crt"
	// adminUser and adminGroup are the user and the group of the administrator.
	adminUser  = "admin"
	adminGroup = "system:masters"
)

// writeKubeconfig writes a kubeconfig with a new client certificate to the directory, and returns its path. It refers
// to no other file, so it can be copied.
func (c *ControlPlane) writeKubeconfig(name, user string, groups ...string) (string, error) {
	pair, err := c.authority.Client(user, groups...)
	if err != nil {
		return "", err
	}
	return c.writeKubeconfigFor(name, user, &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key,
	})
}

// writeTokenKubeconfig writes a kubeconfig with a bearer token to the directory, and returns its path.
func (c *ControlPlane) writeTokenKubeconfig(name, token string) (string, error) {
	return c.writeKubeconfigFor(name, "token", &clientcmdapi.AuthInfo{Token: token})
}

func (c *ControlPlane) writeKubeconfigFor(name, user string, credentials *clientcmdapi.AuthInfo) (string, error) {
	const local = "local"
	config := clientcmdapi.NewConfig()
	config.Clusters[local] = &clientcmdapi.Cluster{Server: c.server, CertificateAuthorityData: c.authority.PEM()}
	config.AuthInfos[user] = credentials
	config.Contexts[local] = &clientcmdapi.Context{Cluster: local, AuthInfo: user}
	config.CurrentContext = local
	path := c.file(name)
	return path, clientcmd.WriteToFile(*config, path)
}

// writeServerPair writes the serving key pair of a component, NAME.crt and NAME.key, and returns both paths.
func (c *ControlPlane) writeServerPair(name string) (certificate, key string, err error) {
	pair, err := c.authority.Server(name)
	if err != nil {
		return "", "", err
	}
	return c.writePair(name, pair)
}

// writeClientPair writes the client key pair of a user, NAME.crt and NAME.key, and returns both paths.
func (c *ControlPlane) writeClientPair(name, user string) (certificate, key string, err error) {
	pair, err := c.authority.Client(user)
	if err != nil {
		return "", "", err
	}
	return c.writePair(name, pair)
}

func (c *ControlPlane) writePair(name string, pair KeyPair) (certificate, key string, err error) {
	if certificate, err = c.write(name+".crt", pair.Certificate); err != nil {
		return "", "", err
	}
	key, err = c.write(name+".key", pair.Key)
	return certificate, key, err
}
