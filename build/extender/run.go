// SPDX-License-Identifier: Apache-2.0

// Package extender is a reference scheduler extender: it serves the plugins of this project over HTTPS to a stock
// scheduler, so that a plugin can be tried before a swap.
//
// It serves the verbs filter, prioritize, preempt and bind, for whole nodes and for names of nodes (nodeCacheCapable),
// and watches nodes and pods as a scheduler does. Every answer is complete or an error, and names only nodes of the
// request.
package extender

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// name is the extender's name in events and in its user agent.
const name = "scheduler-extender"

// Options are the flags of an extender, as its command describes them.
type Options struct {
	Config, Profile, Kubeconfig, Listen string
	// Without ClientCAFile any client is accepted, and without the other two files HTTP is served.
	CertificateFile, KeyFile, ClientCAFile string
	// Bind serves the verb bind: any client can then bind any pod to any node, with the rights of the kubeconfig.
	Bind bool

	Limits

	// Out receives a summary of the served plugins.
	Out io.Writer
}

// Run serves until the context ends, and then finishes the requests in progress.
func Run(ctx context.Context, options Options) error {
	if err := options.check(); err != nil {
		return err
	}
	profile, err := LoadProfile(options.Config, options.Profile, Plugins())
	if err != nil {
		return err
	}
	config, err := options.clientConfig(profile)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	defer broadcaster.Shutdown()
	factory := newInformerFactory(client)
	decider, err := newDecider(profile, connections{
		client: client, config: config, factory: factory, events: broadcaster.NewRecorder(scheme.Scheme, name),
	})
	if err != nil {
		return err
	}
	var binder *Binder
	if options.Bind {
		binder = &Binder{client: client}
	}
	server := options.server(NewHandler(decider, binder, options.Limits))
	listener, err := options.listen(ctx)
	if err != nil {
		return err
	}
	broadcaster.StartRecordingToSink(ctx.Done())
	factory.Start(ctx.Done())
	options.announce(profile, decider, listener.Addr())
	return serve(ctx, server, listener, options.RequestTimeout)
}

// check refuses invalid and unsafe flags.
func (o *Options) check() error {
	host, _, err := net.SplitHostPort(o.Listen)
	switch {
	case err != nil:
		return fmt.Errorf("cannot listen on %q: %w; next: give HOST:PORT with --listen", o.Listen, err)
	case o.RequestTimeout <= 0 || o.MaxBodyBytes <= 0:
		return errors.New("--request-timeout or --max-body-bytes is not positive; next: give both a value greater than 0")
	case (o.CertificateFile == "") != (o.KeyFile == ""):
		return errors.New("TLS needs a certificate and its key; next: give both --tls-cert-file and --tls-private-key-file")
	case o.ClientCAFile != "" && o.CertificateFile == "":
		return errors.New("--client-ca-file needs TLS; " +
			"next: give --tls-cert-file and --tls-private-key-file too")
	case o.ClientCAFile == "" && !isLoopback(host):
		return fmt.Errorf("any client that reaches %s could send requests, and bind pods with --bind; next: give --client-ca-file, "+
			"--tls-cert-file and --tls-private-key-file, or listen on 127.0.0.1", o.Listen)
	}
	return nil
}

// isLoopback reports whether a host is a loopback address. A name could resolve to any address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// clientConfig returns the connection to the API server, with the rate limits of the configuration file.
func (o *Options) clientConfig(profile *Profile) (*restclient.Config, error) {
	// Without a file it is the service account of the pod.
	config, err := clientcmd.BuildConfigFromFlags("", cmp.Or(o.Kubeconfig, profile.connection.Kubeconfig))
	if err != nil {
		return nil, fmt.Errorf("cannot load the connection to the API server: %w; next: give an existing file with --kubeconfig", err)
	}
	config.QPS, config.Burst = profile.connection.QPS, int(profile.connection.Burst)
	config.ContentType, config.AcceptContentTypes = profile.connection.ContentType, profile.connection.AcceptContentTypes
	return restclient.AddUserAgent(config, name), nil
}

func (o *Options) server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler,
		// After this time the body cannot be read. A request that was read in time has its answer before.
		ReadTimeout:    o.RequestTimeout + grace/2,
		WriteTimeout:   o.RequestTimeout + grace,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
	}
}

// listen opens the port, with TLS or without. Replaced certificates are read again until the context ends.
func (o *Options) listen(ctx context.Context) (net.Listener, error) {
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; next: give another address with --listen", o.Listen, err)
	}
	if o.CertificateFile == "" {
		return listener, nil
	}
	config, err := o.tlsConfig(ctx)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return tls.NewListener(listener, config), nil
}

// announce prints the address, the allowed clients and the served plugins.
func (o *Options) announce(profile *Profile, decider *Decider, address net.Addr) {
	scheme, clients := "http", "any client"
	if o.CertificateFile != "" {
		scheme = "https"
	}
	if o.ClientCAFile != "" {
		clients = "clients with a certificate of " + o.ClientCAFile
	}
	fmt.Fprintf(o.Out, "serving the profile %s of %s on %s://%s to %s\n",
		profile.profile.SchedulerName, o.Config, scheme, address, clients)
	plugins := decider.framework.ListPlugins()
	for _, point := range []struct {
		name    string
		plugins schedulerconfig.PluginSet
	}{{"preFilter", plugins.PreFilter}, {"filter", plugins.Filter}, {"preScore", plugins.PreScore}, {"score", plugins.Score}} {
		for _, plugin := range point.plugins.Enabled {
			fmt.Fprintf(o.Out, "%-10s %s", point.name, plugin.Name)
			if plugin.Weight != 0 {
				fmt.Fprintf(o.Out, " (weight %d)", plugin.Weight)
			}
			fmt.Fprintln(o.Out)
		}
	}
	if decider.weights > 0 {
		fmt.Fprintf(o.Out, "the weights sum to %d; "+
			"next: give the extender this weight in the scheduler's configuration: weight: %d\n",
			decider.weights, decider.weights)
	}
}

// serve answers requests until the context ends, and then waits for those in progress until they time out.
func serve(ctx context.Context, server *http.Server, listener net.Listener, requestTimeout time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	klog.InfoS("Shutting down after the requests in progress")
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout+grace)
	defer cancel()
	if err := server.Shutdown(deadline); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}
