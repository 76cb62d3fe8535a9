// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/keyutil"

	"kube-scheduler-fork/build/localcluster/supervisor"
)

// nextAPIServer is the next step when the API server does not start.
const nextAPIServer = "build it in the patched tree with: make all WHAT=cmd/kube-apiserver; " +
	"if it exists, fix what the last log lines report and run again"

// startAPIServer starts the API server and waits until the namespaces of pods and of node leases exist.
func (c *ControlPlane) startAPIServer(ctx context.Context, executable, etcd string, more []string) error {
	certificate, key, err := c.writeServerPair("kube-apiserver")
	if err != nil {
		return err
	}
	serviceAccountKey, err := newKey()
	if err != nil {
		return err
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(serviceAccountKey)
	if err != nil {
		return err
	}
	serviceAccounts, err := c.write("service-accounts.key", encoded)
	if err != nil {
		return err
	}
	authority := c.file(authorityFile)
	c.apiServerComponent = supervisor.Component{
		Name:        "kube-apiserver",
		Executable:  executable,
		Directory:   c.Folder(),
		Environment: c.environment,
		Listens:     true,
		Ready:       "/readyz",
		Next:        nextAPIServer,
		Arguments: func(port int) []string {
			return append([]string{
				"--bind-address=" + supervisor.Loopback,
				"--secure-port=" + strconv.Itoa(port),
				// Without it the API server fails on a machine whose interfaces have no address.
				"--advertise-address=" + supervisor.Loopback,
				// No pod needs the service "kubernetes", and a loopback address would be refused as its endpoint.
				"--endpoint-reconciler-type=none",
				"--service-cluster-ip-range=10.96.0.0/16",
				"--tls-cert-file=" + certificate,
				"--tls-private-key-file=" + key,
				"--client-ca-file=" + authority,
				"--authorization-mode=RBAC",
				"--etcd-servers=" + etcd,
				"--etcd-cafile=" + authority,
				"--etcd-certfile=" + certificate,
				"--etcd-keyfile=" + key,
				"--service-account-issuer=https://kubernetes.default.svc",
				"--service-account-key-file=" + serviceAccounts,
				"--service-account-signing-key-file=" + serviceAccounts,
				// Without a controller manager, nothing creates the service account "default", which ServiceAccount
				// requires of every pod, and nothing removes the not-ready taint that TaintNodesByCondition adds to
				// every new node.
				"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
			}, more...)
		},
	}
	var port int
	if c.apiServer, port, err = c.supervisor.Start(ctx, c.apiServerComponent); err != nil {
		return err
	}
	if err := c.connect(port); err != nil {
		return err
	}
	// /readyz does not wait for the namespaces.
	for _, namespace := range []string{corev1.NamespaceDefault, corev1.NamespaceNodeLease} {
		if err := c.waitNamespace(ctx, namespace); err != nil {
			return fmt.Errorf("kube-apiserver did not create the namespace %s: %w", namespace, err)
		}
	}
	return nil
}

// ReplaceAPIServer ends the API server, and starts another program with the same certificates, at the same address, on the
// same store: the upgrade of a control plane. The further arguments follow those of the first one.
func (c *ControlPlane) ReplaceAPIServer(ctx context.Context, executable string, more ...string) error {
	if err := checkExecutable("kube-apiserver", executable, nextAPIServer); err != nil {
		return err
	}
	if err := c.supervisor.End(c.apiServer); err != nil {
		return err
	}
	address, err := url.Parse(c.server)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		return err
	}
	component := c.apiServerComponent
	component.Executable, component.Address = executable, c.server
	component.Arguments = func(int) []string { return append(c.apiServerComponent.Arguments(port), more...) }
	c.apiServer, _, err = c.supervisor.Start(ctx, component)
	return err
}

func (c *ControlPlane) waitNamespace(ctx context.Context, name string) error {
	byName := fields.OneTermEqualSelector("metadata.name", name)
	list := cache.NewListWatchFromClient(c.client.CoreV1().RESTClient(), "namespaces", "", byName)
	return c.until(ctx, list, &corev1.Namespace{}, func(event watch.Event) (bool, error) {
		return event.Type == watch.Added || event.Type == watch.Modified, nil
	})
}

// until watches objects, including existing ones, until a condition holds, a component ends, or
// supervisor.StartDeadline has passed.
func (c *ControlPlane) until(
	ctx context.Context, list *cache.ListWatch, object runtime.Object, condition watchtools.ConditionFunc,
) error {
	ctx, cancel := c.supervisor.WhileAlive(ctx)
	defer cancel()
	late := fmt.Errorf("not within %s; next: run again", supervisor.StartDeadline)
	ctx, cancelDeadline := context.WithTimeoutCause(ctx, supervisor.StartDeadline, late)
	defer cancelDeadline()
	_, err := watchtools.UntilWithSync(ctx, list, object, nil, condition)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
