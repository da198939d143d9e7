#include "rendezvous/membership.h"
