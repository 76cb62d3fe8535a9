// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"net"
	"strconv"

	"kube-scheduler-fork/build/localcluster/supervisor"
)

// nextEtcd is the next step when etcd does not start.
const nextEtcd = "build it with: GOWORK=off go -C build/pins/etcd build -o FILE go.etcd.io/etcd/server/v3; " +
	"if it exists, check whether the disk is full: df -h \"${TMPDIR:-/tmp}\""

// startEtcd starts a single etcd that requires the certificates of this run, and returns its address.
func (c *ControlPlane) startEtcd(ctx context.Context, executable string) (string, error) {
	certificate, key, err := c.writeServerPair("etcd")
	if err != nil {
		return "", err
	}
	address := func(port int) string { return "https://" + net.JoinHostPort(supervisor.Loopback, strconv.Itoa(port)) }
	// A single member has no peers, but etcd always listens for them: a socket in the run's directory needs no port.
	// (The ":0" belongs to the socket's name.)
	const peer = "unix://peer:0"
	_, port, err := c.supervisor.Start(ctx, supervisor.Component{
		Name:        "etcd",
		Executable:  executable,
		Directory:   c.Folder(),
		Environment: c.environment,
		Listens:     true,
		Ready:       "/health",
		Next:        nextEtcd,
		Arguments: func(port int) []string {
			return []string{
				"--name=local",
				// One directory for each attempt, because a member keeps the addresses that it was first started with.
				"--data-dir=" + c.file("etcd-"+strconv.Itoa(port)),
				// The data is deleted with the directory, so it need not survive a crash of the machine.
				"--unsafe-no-fsync",
				"--listen-client-urls=" + address(port),
				"--advertise-client-urls=" + address(port),
				"--listen-peer-urls=" + peer,
				"--initial-advertise-peer-urls=" + peer,
				"--initial-cluster=local=" + peer,
				"--client-cert-auth",
				"--trusted-ca-file=" + c.file(authorityFile),
				"--cert-file=" + certificate,
				"--key-file=" + key,
			}
		},
	})
	return address(port), err
}
