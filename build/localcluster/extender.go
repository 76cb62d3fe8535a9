// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"kube-scheduler-fork/build/localcluster/supervisor"
)

// DocumentedExtender is the address of the reference extender in the project's pages and configurations.
const DocumentedExtender = "https://" + supervisor.Loopback + ":8888"

// nextExtender is the next step when the extender does not start.
const nextExtender = "build it with: GOWORK=off go -C build/extender build -o FILE ./cmd/scheduler-extender; " +
	"if it exists, fix what the last log lines report and run again"

// Extender is a running scheduler-extender, which requires client certificates of the run's authority.
type Extender struct {
	plane   *ControlPlane
	process *supervisor.Process
	url     string
	// certificate, key and authority are the files that a scheduler needs to connect to it.
	certificate, key, authority string
}

// StartExtender starts a scheduler-extender with the plugins of a profile in a scheduler's configuration, and waits
// until its caches have synced. There can be one at a time.
func (c *ControlPlane) StartExtender(ctx context.Context, executable, configFile, profile string) (*Extender, error) {
	const name = "scheduler-extender"
	if err := checkExecutable(name, executable, nextExtender); err != nil {
		return nil, err
	}
	// It needs no more rights than a scheduler.
	kubeconfig, err := c.writeKubeconfig(name+".kubeconfig", "system:kube-scheduler")
	if err != nil {
		return nil, err
	}
	certificate, key, err := c.writeServerPair(name)
	if err != nil {
		return nil, err
	}
	e := &Extender{plane: c, authority: c.file(authorityFile)}
	if e.certificate, e.key, err = c.writeClientPair(name+"-client", "kube-scheduler"); err != nil {
		return nil, err
	}
	address := func(port int) string { return net.JoinHostPort(supervisor.Loopback, strconv.Itoa(port)) }
	p, port, err := c.supervisor.Start(ctx, supervisor.Component{
		Name:       name,
		Executable: executable,
		Listens:    true,
		Ready:      "/healthz",
		Next:       "fix what the last lines report in " + configFile + ", and run again",
		NextPanic:  nextPanic,
		Arguments: func(port int) []string {
			return []string{
				"--config=" + configFile,
				"--profile=" + profile,
				"--kubeconfig=" + kubeconfig,
				"--listen=" + address(port),
				"--bind",
				"--tls-cert-file=" + certificate,
				"--tls-private-key-file=" + key,
				"--client-ca-file=" + e.authority,
			}
		},
	})
	if err != nil {
		return nil, err
	}
	e.process, e.url = p, "https://"+address(port)
	return e, nil
}

// URL returns its address.
func (e *Extender) URL() string { return e.url }

// Stop ends the extender; the control plane keeps running.
func (e *Extender) Stop() error { return e.plane.supervisor.End(e.process) }

// redirect makes an extender in a scheduler's configuration refer to this one.
func (e *Extender) redirect(extender map[string]any) {
	path := ""
	if address, err := url.Parse(fmt.Sprint(extender["urlPrefix"])); err == nil {
		path = address.Path
	}
	extender["urlPrefix"] = e.url + path
	extender["enableHTTPS"] = true
	extender["tlsConfig"] = map[string]any{"caFile": e.authority, "certFile": e.certificate, "keyFile": e.key}
}

// ReadExtenders returns the addresses of the extenders on loopback in a KubeSchedulerConfiguration, or only those at
// one address, https://host:port. WithExtender replaces these.
func ReadExtenders(configFile, only string) ([]string, error) {
	config, err := readSchedulerConfig(configFile)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, extender := range localExtenders(config.content.Object, only) {
		addresses = append(addresses, fmt.Sprint(extender["urlPrefix"]))
	}
	return addresses, nil
}
