// SPDX-License-Identifier: Apache-2.0

// Package extender is a reference scheduler extender: it serves the plugins of this project to a scheduler that does
// not have them, over HTTPS, so that a plugin can be tried before anything is swapped.
//
// It answers all four verbs, filter, prioritize, preempt and bind, both for whole nodes and for names of nodes
// (nodeCacheCapable). It watches nodes and pods as a scheduler does. Every answer is whole or an error; none names a
// node that the request did not.
package extender

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// name is what the extender calls itself, in events and to the API server.
const name = "scheduler-extender"

// Options say what an extender serves, and where.
type Options struct {
	// Config is the file with the KubeSchedulerConfiguration, and Profile the schedulerName of the profile in it; empty
	// is the only one.
	Config, Profile string
	// Kubeconfig says how to reach the API server; empty is as Config says, and if it does not, as a pod does.
	Kubeconfig string
	// Listen is the address to listen on, HOST:PORT.
	Listen string
	// CertificateFile and KeyFile are what TLS is served with; empty is HTTP without TLS.
	CertificateFile, KeyFile string
	// ClientCAFile holds the authorities that clients must have a certificate of.
	ClientCAFile string
	// AllowAnyone lets anyone who reaches the address ask, and bind pods if Bind says so, without a certificate.
	AllowAnyone bool
	// Bind serves the verb bind: anyone who may ask can then bind any pod to any node, with the rights of the
	// kubeconfig.
	Bind bool

	Limits

	// Out receives the lines that say what is served.
	Out io.Writer
}

// Run serves until the context ends, and then ends what it is answering.
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

// check refuses what cannot be, and what is not safe unless it is asked for by name.
func (o *Options) check() error {
	host, _, err := net.SplitHostPort(o.Listen)
	switch {
	case err != nil:
		return fmt.Errorf("cannot listen on %q: %w; next: give HOST:PORT with --listen", o.Listen, err)
	case o.RequestTimeout <= 0 || o.MaxBodyBytes <= 0:
		return errors.New("a request cannot have no time or no bytes; " +
			"next: give more than 0 with --request-timeout and --max-body-bytes")
	case (o.CertificateFile == "") != (o.KeyFile == ""):
		return errors.New("a certificate without its key, or a key without its certificate; " +
			"next: give both --tls-cert-file and --tls-private-key-file")
	case o.ClientCAFile != "" && o.CertificateFile == "":
		return errors.New("clients can show a certificate only over TLS; " +
			"next: give --tls-cert-file and --tls-private-key-file too")
	case o.ClientCAFile != "" && o.AllowAnyone:
		return errors.New("--client-ca-file and --insecure-allow-anyone contradict each other; next: leave one of them out")
	case o.ClientCAFile == "" && !isLoopback(host) && !o.AllowAnyone:
		return fmt.Errorf("anyone who reaches %s could ask, and bind pods with --bind; "+
			"next: give --client-ca-file, --tls-cert-file and --tls-private-key-file, or listen on 127.0.0.1, or say --insecure-allow-anyone", o.Listen)
	}
	return nil
}

// isLoopback tells whether only this machine can reach a host. A name could lead anywhere.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// clientConfig says how to reach the API server: with the limits that the configuration file has for it.
func (o *Options) clientConfig(profile *Profile) (*restclient.Config, error) {
	file := o.Kubeconfig
	if file == "" {
		file = profile.connection.Kubeconfig
	}
	var config *restclient.Config
	var err error
	if file != "" {
		config, err = clientcmd.BuildConfigFromFlags("", file)
	} else {
		config, err = restclient.InClusterConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("it is not known how to reach the API server: %w; "+
			"next: give --kubeconfig, a file that exists", err)
	}
	config.QPS, config.Burst = profile.connection.QPS, int(profile.connection.Burst)
	config.ContentType, config.AcceptContentTypes = profile.connection.ContentType, profile.connection.AcceptContentTypes
	return restclient.AddUserAgent(config, name), nil
}

func (o *Options) server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: o.RequestTimeout,
		// Also for a body that is not read, because what it is about is refused: it must come before the answer goes
		// out.
		ReadTimeout:    o.RequestTimeout,
		WriteTimeout:   o.RequestTimeout + writeGrace,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
	}
}

// listen opens the port, with TLS or without. Certificates are read again until the context ends.
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

// announce says what is served, where and to whom.
func (o *Options) announce(profile *Profile, decider *Decider, address net.Addr) {
	scheme, clients := "http", "anyone who reaches it"
	if o.CertificateFile != "" {
		scheme = "https"
	}
	if o.ClientCAFile != "" {
		clients = "clients with a certificate of " + o.ClientCAFile
	}
	fmt.Fprintf(o.Out, "serving the profile %s of %s on %s://%s to %s\n",
		profile.profile.SchedulerName, o.Config, scheme, address, clients)
	preFilter, filter, preScore, score := decider.Serves()
	for _, point := range []struct {
		name    string
		plugins []schedulerconfig.Plugin
	}{{"preFilter", preFilter}, {"filter", filter}, {"preScore", preScore}, {"score", score}} {
		fmt.Fprintf(o.Out, "%-10s %s\n", point.name, listed(point.plugins))
	}
	if decider.weights > 0 {
		fmt.Fprintf(o.Out, "the weights sum to %d: with weight: %d the scheduler counts these plugins as if it ran them itself\n",
			decider.weights, decider.weights)
	}
}

// listed names plugins, with their weights where they have some.
func listed(plugins []schedulerconfig.Plugin) string {
	if len(plugins) == 0 {
		return "-"
	}
	var names []string
	for _, plugin := range plugins {
		if plugin.Weight != 0 {
			names = append(names, fmt.Sprintf("%s (weight %d)", plugin.Name, plugin.Weight))
		} else {
			names = append(names, plugin.Name)
		}
	}
	return strings.Join(names, ", ")
}

// serve answers requests until the context ends, and then waits for those that have begun, no longer than they may
// take.
func serve(ctx context.Context, server *http.Server, listener net.Listener, requestTimeout time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	klog.InfoS("Ending; the requests that have begun are answered first")
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout+writeGrace)
	defer cancel()
	if err := server.Shutdown(deadline); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}
