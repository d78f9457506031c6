/* Which route large page-locked additions take on a machine that was not measured. Machines are simulated: their times
 * are made up, and their links carry what the attributes say, or down to a sixteenth of it. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "choose/estimate.h"
#include "transfer/transfer.h"

#define MIB        0x1p20
#define PCIE_5_X16 63e9                                  /* bytes a second in theory */
#define H200_LINK  (MIB * 1e9 / 55e9 + MIB * 1e9 / 51e9) /* ns for a MiB of each operand */

enum { CALLS = 200, IN_FLIGHT = 8 /* MiB of an operand that a hybrid has on the link at most */ };

static const struct estimate_job usual = {.bytes = 400000000, .components = CLASS_WIDE, .threads = 2};

struct machine {
    double host, transfer; /* ns for a MiB of each operand */
    double theory;         /* bytes a second that the link's attributes tell; 0: they tell nothing */
    double contention;     /* of the GPU with the host's threads: so many times as long beside them */
    double overhead;       /* of the hybrid: so many times as long as the two rates together would take */
    double start;          /* ns that the first call through the GPU takes longer */
    double noise;          /* a call takes up to this part of its time longer, */
    int disturbed;         /* and every so manyth 3 times as long; 0: none */
};

static const struct machine few_threads_beside_an_h200 = {
    .host = 157e3, .transfer = H200_LINK, .theory = PCIE_5_X16, .contention = 1, .overhead = 1.1, .start = 5e6};

static struct route_estimate estimate;
static unsigned random_number;

/* What some calls took, and would have taken on the host alone. */
struct taken {
    double ns, host_alone;
    int calls[ROUTE_DEVICE], trials;
    bool as_told;
};

static void
begin(const struct machine *machine)
{
    memset(&estimate, 0, sizeof estimate);
    estimate_set_link(&estimate, machine->theory);
    random_number = 1;
}

static double
time_of(const struct machine *machine, enum route route, double mib)
{
    const double beside = machine->transfer * machine->contention;
    if (route != ROUTE_HYBRID)
        return mib * (route == ROUTE_HOST ? machine->host : machine->transfer);
    return fmax(machine->overhead * mib / (1 / machine->host + 1 / beside), IN_FLIGHT * machine->transfer);
}

static double
disturbance(const struct machine *machine, int call)
{
    random_number = random_number * 1664525 + 1013904223;
    return (1 + machine->noise * (random_number >> 8) / 0x1p24) *
           (machine->disturbed && call % machine->disturbed == 0 ? 3 : 1);
}

static struct taken
make_calls(const struct machine *machine, const struct estimate_job *job, int calls)
{
    struct taken taken = {.as_told = true};
    const double mib = (double)job->bytes / MIB;
    for (int call = 1; call <= calls; call++) {
        const struct estimate_choice told = estimate_choose(&estimate, job);
        const struct estimate_choice choice = estimate_begin(&estimate, job);
        const double disturbed = disturbance(machine, call);
        const bool first = choice.route != ROUTE_HOST && !atomic_load(&estimate.started);
        const double ns = disturbed * time_of(machine, choice.route, mib) + (first ? machine->start : 0);
        estimate_end(&estimate, job, &choice, (long long)ns);
        taken.ns += ns;
        taken.host_alone += disturbed * time_of(machine, ROUTE_HOST, mib);
        taken.calls[choice.route]++;
        taken.trials += choice.stage == ESTIMATE_TRIAL;
        taken.as_told &= choice.route == told.route && choice.stage == told.stage;
    }
    return taken;
}

static bool
is_about(double seconds, double wanted)
{
    return fabs(seconds / wanted - 1) < 0.01;
}

static void
a_first_call_is_the_hosts_and_the_formula_gives_the_transfers_time(void)
{
    const double nothing = 0, unknown = nothing;
    struct machine machine = few_threads_beside_an_h200;
    begin(&machine);
    struct estimate_choice choice = estimate_choose(&estimate, &usual);
    CHECK(choice.route == ROUTE_HOST && choice.stage == ESTIMATE_LEARNING && choice.link == LINK_ATTRIBUTES);
    CHECK(is_about(choice.seconds[ROUTE_TRANSFER], 15.1e-3), "%g", choice.seconds[ROUTE_TRANSFER]);
    CHECK(choice.seconds[ROUTE_HOST] == unknown && choice.seconds[ROUTE_HYBRID] == unknown);

    machine.theory = nothing;
    begin(&machine);
    choice = estimate_choose(&estimate, &usual);
    CHECK(choice.link == LINK_ASSUMED && is_about(choice.seconds[ROUTE_TRANSFER], 30.2e-3));
}

static void
what_is_predicted_is_of_both_rates_until_it_is_measured(void)
{
    const struct machine *machine = &few_threads_beside_an_h200;
    begin(machine);
    make_calls(machine, &usual, 3);
    struct estimate_choice choice = estimate_choose(&estimate, &usual);
    const double *seconds = choice.seconds;
    CHECK(choice.stage == ESTIMATE_TRIAL && choice.route == ROUTE_HYBRID);
    CHECK(is_about(seconds[ROUTE_HOST], 59.9e-3));
    CHECK(is_about(seconds[ROUTE_HYBRID], 1 / (1 / seconds[ROUTE_HOST] + 1 / seconds[ROUTE_TRANSFER])));
    make_calls(machine, &usual, 3);
    choice = estimate_choose(&estimate, &usual);
    CHECK(choice.stage == ESTIMATE_MEASURED && choice.route == ROUTE_HYBRID);
    CHECK(is_about(seconds[ROUTE_HYBRID], 1e-9 * time_of(machine, ROUTE_HYBRID, (double)usual.bytes / MIB)));
}

static void
no_machine_is_slower_than_its_host_by_more_than_5_percent(void)
{
    const double hosts[] = {5e3, 10e3, 20e3, 40e3, 80e3, 160e3, 320e3}, links[] = {0.5, 1, 1.3, 2, 4, 8, 16};
    const double theories[] = {0, 8e9, 31.5e9, PCIE_5_X16, 2 * PCIE_5_X16}, overheads[] = {1, 1.2, 2};
    const struct {
        double noise;
        int disturbed;
    } noises[] = {{0, 0}, {0.5, 0}, {0.2, 7}};
    const size_t sizes[] = {32, 100, 1000};
    struct estimate_job job = usual;
    bool as_told = true;
    for (int host = 0; host < 7; host++)
        for (int link = 0; link < 7; link++)
            for (int theory = 0; theory < 5; theory++)
                for (int how = 0; how < 3 * 3 * 3 * 3; how++) {
                    struct machine machine = {.host = hosts[host], .transfer = links[link] * H200_LINK};
                    machine.theory = theories[theory];
                    machine.contention = how % 3 ? 10 : 1;
                    machine.overhead = overheads[how / 3 % 3];
                    machine.noise = noises[how / 9 % 3].noise;
                    machine.disturbed = noises[how / 9 % 3].disturbed;
                    machine.start = how % 3 == 2 ? 0 : 5e6;
                    job.bytes = sizes[how / 27] << 20;
                    begin(&machine);
                    const double told = estimate_choose(&estimate, &job).seconds[ROUTE_TRANSFER] * 1e9;
                    if (machine.transfer > 16.1 * told * MIB / (double)job.bytes)
                        continue;
                    const struct taken taken = make_calls(&machine, &job, CALLS);
                    as_told &= taken.as_told;
                    CHECK(taken.ns <= 1.05 * taken.host_alone,
                          "%.3f: host %g, link %g of %g, hybrid %g and %g, noise %g and %d, %zu MiB",
                          taken.ns / taken.host_alone, machine.host, machine.transfer, machine.theory,
                          machine.contention, machine.overhead, machine.noise, machine.disturbed, job.bytes >> 20);
                }
    CHECK(as_told, "a call does what was told before");
}

static void
few_threads_beside_a_quick_link_leave_most_to_the_gpu(void)
{
    begin(&few_threads_beside_an_h200);
    const struct taken taken = make_calls(&few_threads_beside_an_h200, &usual, CALLS);
    CHECK(taken.calls[ROUTE_HYBRID] >= CALLS * 9 / 10, "%d", taken.calls[ROUTE_HYBRID]);
    CHECK(taken.ns < 0.3 * taken.host_alone, "%g", taken.ns / taken.host_alone);
}

static void
a_transfer_that_is_quicker_than_the_hybrid_is_found(void)
{
    struct machine machine = few_threads_beside_an_h200;
    machine.overhead = 1.5;
    begin(&machine);
    const struct taken taken = make_calls(&machine, &usual, CALLS);
    CHECK(taken.calls[ROUTE_TRANSFER] >= CALLS * 8 / 10, "%d", taken.calls[ROUTE_TRANSFER]);

    struct estimate_job other = usual;
    other.bytes /= 4;
    const struct estimate_choice choice = estimate_choose(&estimate, &other);
    CHECK(choice.stage == ESTIMATE_LEARNING && choice.link == LINK_MEASURED, "the link is known for other sizes");
    CHECK(is_about(choice.seconds[ROUTE_TRANSFER], 15.1e-3 / 4));
}

static void
a_host_that_is_quicker_than_any_link_tries_nothing(void)
{
    struct machine machine = few_threads_beside_an_h200;
    machine.host = 10e3;
    begin(&machine);
    CHECK(make_calls(&machine, &usual, CALLS).calls[ROUTE_HOST] == CALLS);
    CHECK(estimate_choose(&estimate, &usual).stage == ESTIMATE_BEHIND);
}

static void
a_link_that_disappoints_is_left_after_a_few_trials(void)
{
    struct machine machine = few_threads_beside_an_h200;
    machine.host = 58e3; /* four threads */
    machine.transfer *= 15;
    machine.overhead = 1.2;
    begin(&machine);
    const struct taken taken = make_calls(&machine, &usual, 10 * CALLS);
    CHECK(taken.trials >= 3 && taken.trials <= 20, "%d", taken.trials);
    CHECK(taken.calls[ROUTE_HOST] == 10 * CALLS - taken.trials && taken.calls[ROUTE_TRANSFER] == 0);
}

static void
a_trial_waits_until_its_start_costs_next_to_nothing(void)
{
    const struct estimate_job small = {.bytes = HYBRID_MIN, .threads = 2};
    const struct machine *machine = &few_threads_beside_an_h200;
    begin(machine);
    make_calls(machine, &small, 3);
    CHECK(estimate_choose(&estimate, &small).stage == ESTIMATE_WAITING);
    CHECK(make_calls(machine, &small, 20).trials == 0);
    CHECK(make_calls(machine, &small, 40).trials >= 3);
}

static void
a_machine_that_changes_is_followed(void)
{
    struct machine machine = few_threads_beside_an_h200;
    begin(&machine);
    make_calls(&machine, &usual, CALLS);
    machine.host = 10e3; /* other programs have gone */
    machine.overhead = 1.5;
    make_calls(&machine, &usual, CALLS);
    CHECK(make_calls(&machine, &usual, CALLS).calls[ROUTE_HOST] >= CALLS * 9 / 10);

    machine = few_threads_beside_an_h200;
    begin(&machine);
    make_calls(&machine, &usual, CALLS);
    machine.transfer *= 20; /* others use the link */
    machine.overhead = 2;
    make_calls(&machine, &usual, CALLS);
    CHECK(make_calls(&machine, &usual, CALLS).calls[ROUTE_HOST] >= CALLS * 9 / 10);
}

static void
sizes_components_and_other_threads_learn_anew(void)
{
    struct estimate_job job[] = {usual, usual, usual};
    job[0].bytes *= 4;
    job[1].components = CLASS_HALF;
    job[2].threads = 16;
    begin(&few_threads_beside_an_h200);
    make_calls(&few_threads_beside_an_h200, &usual, CALLS);
    for (int i = 0; i < 3; i++)
        CHECK(estimate_choose(&estimate, &job[i]).stage == ESTIMATE_LEARNING, "job %d", i);
    make_calls(&few_threads_beside_an_h200, &job[2], 1);
    CHECK(estimate_choose(&estimate, &usual).stage == ESTIMATE_LEARNING);
}

static void
one_thread_tries_at_a_time(void)
{
    begin(&few_threads_beside_an_h200);
    make_calls(&few_threads_beside_an_h200, &usual, 3);
    const struct estimate_choice trial = estimate_begin(&estimate, &usual);
    const struct estimate_choice other = estimate_begin(&estimate, &usual);
    CHECK(trial.stage == ESTIMATE_TRIAL && trial.route == ROUTE_HYBRID);
    CHECK(other.stage != ESTIMATE_TRIAL && other.route == ROUTE_HOST);
    estimate_end(&estimate, &usual, &other, 60000000);
    CHECK(estimate_begin(&estimate, &usual).stage != ESTIMATE_TRIAL, "the trial has not ended");
    estimate_end(&estimate, &usual, &trial, 60000000);
    CHECK(estimate_begin(&estimate, &usual).stage == ESTIMATE_TRIAL);
}

int
main(void)
{
    RUN(a_first_call_is_the_hosts_and_the_formula_gives_the_transfers_time);
    RUN(what_is_predicted_is_of_both_rates_until_it_is_measured);
    RUN(no_machine_is_slower_than_its_host_by_more_than_5_percent);
    RUN(few_threads_beside_a_quick_link_leave_most_to_the_gpu);
    RUN(a_transfer_that_is_quicker_than_the_hybrid_is_found);
    RUN(a_host_that_is_quicker_than_any_link_tries_nothing);
    RUN(a_link_that_disappoints_is_left_after_a_few_trials);
    RUN(a_trial_waits_until_its_start_costs_next_to_nothing);
    RUN(a_machine_that_changes_is_followed);
    RUN(sizes_components_and_other_threads_learn_anew);
    RUN(one_thread_tries_at_a_time);
    return check_report();
}
