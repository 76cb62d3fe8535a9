// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfig "k8s.io/component-base/config"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	internalcache "k8s.io/kubernetes/pkg/scheduler/internal/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// Start is what kube-scheduler would start with.
type Start struct {
	// ConfigFile is the path of the configuration file; empty if there is none, and flags alone make the configuration.
	ConfigFile string
	// Config is the configuration: defaulted, with the flags that count more than the file applied, and validated.
	Config *schedulerconfig.KubeSchedulerConfiguration
	// Registry are the plugins that the command adds to those of the scheduler. May be nil.
	Registry frameworkruntime.Registry
	// KubeconfigFlag is the value of the flag --kubeconfig.
	KubeconfigFlag string
	// Master is the value of the flag --master.
	Master string
}

// Validate goes on where a configuration has been read: unless err says what is wrong with it already, it does all else
// that kube-scheduler does before its first request. It makes every profile and calls New of every plugin in it, with a
// client that sends no request; it makes the extenders, for which it reads those of the files they name that are on
// this machine; and it makes the leader election. Up to here it contacts no server; it listens nowhere and writes
// nothing.
//
// What it found goes to errOut, one error a line, and the return value is then an error that says how many there are.
// Without errors, a summary of the profiles and notes on what may surprise go to out. Then each plugin that is a
// services.SourceChecker asks its sources once: what it found goes to out, what failed as warnings. For that the API
// server is asked for the nodes; and it is asked whether it has what plugins of other projects need. Without such
// plugins it is not asked.
func Validate(out, errOut io.Writer, start Start, err error) error {
	what := start.ConfigFile
	if what == "" {
		what = "the configuration from the flags"
	}
	var profiles profile.Map
	var sources []source
	var defaults *schedulerconfig.Plugins
	if err == nil {
		profiles, sources, err = start.check()
	}
	if err == nil {
		defaults, err = defaultPlugins(start.Config.APIVersion)
	}
	if err != nil {
		messages := lines(err)
		for _, line := range messages {
			fmt.Fprintln(errOut, "error:", line)
		}
		return fmt.Errorf("%s: %s, listed above", what, count(len(messages), "error"))
	}
	fmt.Fprintf(out, "%s is valid (%s)\n", what, start.Config.APIVersion)
	for _, line := range append(start.summary(profiles, defaults), start.notes(profiles, defaults)...) {
		fmt.Fprintln(out, line)
	}
	start.checkSources(out, sources)
	start.checkCarried(out, profiles)
	return nil
}

// check makes a scheduler of the configuration, which stops at the first error, and then tries each part on its own, to
// find all. The plugins that it makes for that are those whose sources it returns.
func (s Start) check() (profile.Map, []source, error) {
	if err := frameworkplugins.NewInTreeRegistry().Merge(s.Registry); err != nil {
		return nil, nil, err
	}
	offline, err := newOffline()
	if err != nil {
		return nil, nil, err
	}
	cfg := s.Config.DeepCopy()
	for i := range cfg.Extenders {
		leaveOutMissingFiles(&cfg.Extenders[i])
	}
	stop := make(chan struct{})
	defer close(stop)
	// First, because it writes into the args of NodeResourcesFit which resources the extenders have it ignore.
	made, startErr := scheduler.New(offline.client, offline.informers, offline.dynamicInformers, newRecorder, stop,
		scheduler.WithComponentConfigVersion(cfg.TypeMeta.APIVersion),
		scheduler.WithKubeConfig(offline.kubeConfig),
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithPercentageOfNodesToScore(cfg.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(s.Registry),
		scheduler.WithPodMaxBackoffSeconds(cfg.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(cfg.PodInitialBackoffSeconds),
		scheduler.WithExtenders(cfg.Extenders...),
		scheduler.WithParallelism(cfg.Parallelism),
	)
	registry := s.registry()
	var errs []error
	var sources []source
	for i := range cfg.Profiles {
		plugins, profileErrs := offline.tryProfile(field.NewPath("profiles").Index(i), &cfg.Profiles[i], registry)
		errs = append(errs, profileErrs...)
		sources = append(sources, sourcesOf(cfg.Profiles[i].SchedulerName, plugins)...)
	}
	for i := range cfg.Extenders {
		if _, err := scheduler.NewHTTPExtender(&cfg.Extenders[i]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field.NewPath("extenders").Index(i), err))
		}
	}
	if err := offline.leaderElectionError(cfg.LeaderElection); err != nil {
		errs = append(errs, fmt.Errorf("leaderElection: %w", err))
	}
	if len(errs) > 0 {
		return nil, nil, utilerrors.NewAggregate(errs)
	}
	if startErr != nil {
		return nil, nil, startErr
	}
	return made.Profiles, sources, nil
}

// registry returns all plugins by their names.
func (s Start) registry() frameworkruntime.Registry {
	registry := frameworkplugins.NewInTreeRegistry()
	for name, factory := range s.Registry {
		registry[name] = factory
	}
	return registry
}

// offline is what a scheduler is made with when it must not reach a cluster. Its informers are never started.
type offline struct {
	kubeConfig       *restclient.Config
	client           clientset.Interface
	informers        informers.SharedInformerFactory
	dynamicInformers dynamicinformer.DynamicSharedInformerFactory
}

func newOffline() (*offline, error) {
	// Plugins make clients of their own from it.
	kubeConfig := &restclient.Config{Host: "https://cluster.invalid", Transport: refusing{}}
	client, err := clientset.NewForConfig(kubeConfig)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(kubeConfig)
	if err != nil {
		return nil, err
	}
	return &offline{
		kubeConfig:       kubeConfig,
		client:           client,
		informers:        scheduler.NewInformerFactory(client, 0),
		dynamicInformers: dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0),
	}, nil
}

// refusing is an http.RoundTripper that sends nothing. Plugins of other projects wait in New until informers of their
// own have listed: they are told that there is nothing.
type refusing struct{}

var errRefused = errors.New("no request is sent while a configuration is validated")

func (refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		request.Body.Close()
	}
	switch query := request.URL.Query(); {
	case query.Get("watch") == "true":
		<-request.Context().Done()
		return nil, request.Context().Err()
	case request.Method == http.MethodGet && query.Get("resourceVersion") != "":
		return &http.Response{
			StatusCode: http.StatusOK, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(`{"metadata":{"resourceVersion":"1"},"items":[]}`)),
		}, nil
	}
	return nil, errRefused
}

// newRecorder makes a recorder without a place to put events.
func newRecorder(string) events.EventRecorder { return &events.FakeRecorder{} }

// failedPlugin stands in for a plugin whose New returned an error, so that New of the others is called too.
type failedPlugin string

func (f failedPlugin) Name() string { return string(f) }

// tryProfile makes the framework of a profile and returns the plugins that could be made, by their names, and the
// errors of the others; or, if there are none, what is wrong with the profile as a whole, of which the framework tells
// the first.
func (o *offline) tryProfile(path *field.Path, p *schedulerconfig.KubeSchedulerProfile, registry frameworkruntime.Registry) (map[string]framework.Plugin, []error) {
	plugins := map[string]framework.Plugin{}
	errs := wrongPlugins(path.Child("plugins"), p.Plugins, registry)
	collecting := make(frameworkruntime.Registry, len(registry))
	for name, factory := range registry {
		name, factory := name, factory
		collecting[name] = func(args runtime.Object, handle framework.Handle) (framework.Plugin, error) {
			plugin, err := factory(args, handle)
			if err == nil {
				plugins[name] = plugin
				return plugin, nil
			}
			for _, line := range lines(err) {
				errs = append(errs, fmt.Errorf("%s: plugin %s: %s", path, name, line))
			}
			return failedPlugin(name), nil
		}
	}
	if _, err := o.newFramework(collecting, p); err != nil && len(errs) == 0 {
		return plugins, []error{fmt.Errorf("%s: %w", path, err)}
	}
	// The framework calls them in no order.
	sort.SliceStable(errs, func(i, j int) bool { return errs[i].Error() < errs[j].Error() })
	return plugins, errs
}

func (o *offline) newFramework(registry frameworkruntime.Registry, p *schedulerconfig.KubeSchedulerProfile) (framework.Framework, error) {
	return frameworkruntime.NewFramework(registry, p,
		frameworkruntime.WithClientSet(o.client),
		frameworkruntime.WithKubeConfig(o.kubeConfig),
		frameworkruntime.WithInformerFactory(o.informers),
		frameworkruntime.WithSnapshotSharedLister(internalcache.NewEmptySnapshot()),
		frameworkruntime.WithPodNominator(internalqueue.NewPodNominator(o.informers.Core().V1().Pods().Lister())),
		frameworkruntime.WithEventRecorder(newRecorder("")),
	)
}

// wrongPlugins returns an error for each plugin that is enabled and does not exist, or has a weight that turns its score
// round, which upstream accepts at some points and not at others.
func wrongPlugins(path *field.Path, plugins *schedulerconfig.Plugins, registry frameworkruntime.Registry) []error {
	var errs []error
	for _, point := range extensionPoints {
		for _, plugin := range point.set(plugins).Enabled {
			if _, found := registry[plugin.Name]; !found {
				errs = append(errs, fmt.Errorf("%s: this scheduler has no plugin of that name", path.Child(point.name, "enabled").Key(plugin.Name)))
			}
			if plugin.Weight < 0 {
				weight := path.Child(point.name, "enabled").Key(plugin.Name).Child("weight")
				errs = append(errs, field.Invalid(weight, plugin.Weight, "must not be negative"))
			}
		}
	}
	return errs
}

// leaderElectionError makes the leader election as kube-scheduler does.
func (o *offline) leaderElectionError(cfg componentbaseconfig.LeaderElectionConfiguration) error {
	if !cfg.LeaderElect {
		return nil
	}
	lock, err := resourcelock.New(cfg.ResourceLock, cfg.ResourceNamespace, cfg.ResourceName, o.client.CoreV1(), o.client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: "validated"})
	if err != nil {
		return err
	}
	_, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: cfg.LeaseDuration.Duration,
		RenewDeadline: cfg.RenewDeadline.Duration,
		RetryPeriod:   cfg.RetryPeriod.Duration,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {},
		},
		Name: "validated",
	})
	return err
}
